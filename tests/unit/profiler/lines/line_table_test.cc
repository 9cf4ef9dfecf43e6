#include "profiler/lines/line_table.h"

#include <gtest/gtest.h>

namespace kiln::profiler {
namespace {

constexpr const char* kPtx = R"(
.version 8.4
.target sm_90a
	// .globl	add
.visible .entry add(
	.param .u64 .ptr .global .align 16 add_param_0,
	.param .u32 add_param_1
)
.reqntid 128
{
	.reg .pred 	%p<2>;
	.reg .b32 	%r<31>;
$L__func_begin0:
	.loc	1 11 0

	ld.param.b64 	%rd4, [add_param_0];
$L__tmp0:
	.loc	1 13 17
	add.s64 	%rd1, %rd4, %rd7;
	// begin inline asm
	@%p1 ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];
	// end inline asm
	.loc	2 7 12
	{
	.reg .b16 low;
	fma.rn.f32 	%r19, %r1, %r1, 0f3F800000;
	}
	{ mov.b32 %r1, %r2; }
	ret;
$L__func_end0:

}
	.section	.debug_macinfo	{	}
	.file	1 "./add.py"
	.file	2 "/home/u/help.py"
)";

TEST(LineTable, OfPtx) {
  LineTable t = ptx_lines(kPtx);
  EXPECT_EQ(t.function, "add");
  EXPECT_EQ(t.files, (std::vector<std::string>{"add.py", "/home/u/help.py"}));
  ASSERT_EQ(t.code.size(), 6u);
  EXPECT_EQ(t.code[0].text, "ld.param.b64 \t%rd4, [add_param_0]");
  EXPECT_EQ(t.code[0].line, 11);
  EXPECT_EQ(opcode(t.code[2].text), "ld.global.v4.b32");
  EXPECT_EQ(t.code[2].file, 0);
  EXPECT_EQ(t.code[2].line, 13);
  EXPECT_EQ(t.code[3].file, 1);
  EXPECT_EQ(t.code[3].line, 7);
  EXPECT_EQ(t.code[5].text, "ret");
}

TEST(LineTable, OfPtxWithoutLinesOrWithoutAKernel) {
  LineTable t = ptx_lines(".visible .entry f(\n)\n{\n\tret;\n}\n");
  EXPECT_EQ(t.function, "f");
  ASSERT_EQ(t.code.size(), 1u);
  EXPECT_EQ(t.code[0].file, -1);
  EXPECT_EQ(t.code[0].line, 0);
  EXPECT_FALSE(t.has_lines());
  for (const char* text : {"", ".loc 1", ".entry", "no ptx at all;\n}", ".entry f(\n{\n.loc x y\n.file \"\n"}) {
    LineTable none = ptx_lines(text);
    EXPECT_TRUE(none.code.empty()) << text;
  }
}

constexpr const char* kDisassembly = R"(
	.target	sm_90

//--------------------- .text.other          --------------------------
	.section	.text.other,"ax",@progbits
other:
.text.other:
        /*0000*/                   EXIT ;

//--------------------- .text.add          --------------------------
	.section	.text.add,"ax",@progbits
        .global         add
add:
.text.add:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
	//## File "./add.py", line 11
        /*0010*/                   S2R R0, SR_CTAID.X ;                     /* 0x0000000000007919 */
                                                                            /* 0x000e220000002500 */
	//## File "help.py", line 7 inlined at "./add.py", line 14
        /*0020*/              @!P4 LDG.E.128 R4, desc[UR4][R12.64] ;
.L_x_0:
        /*0030*/                   BRA `(.L_x_0);
.L_x_1:
//--------------------- .nv.constant0          --------------------------
)";

TEST(LineTable, OfADisassembly) {
  auto t = read_disassembly(kDisassembly, "add");
  ASSERT_TRUE(t);
  EXPECT_EQ(t->files, (std::vector<std::string>{"add.py", "help.py"}));
  ASSERT_EQ(t->code.size(), 4u);
  EXPECT_EQ(t->code[0].file, -1) << "before the first line";
  EXPECT_EQ(t->code[1].text, "S2R R0, SR_CTAID.X");
  EXPECT_EQ(t->code[1].line, 11);
  EXPECT_EQ(t->code[2].text, "@!P4 LDG.E.128 R4, desc[UR4][R12.64]");
  EXPECT_EQ(t->code[2].pc, 0x20u);
  EXPECT_EQ(t->code[2].file, 1);
  EXPECT_EQ(t->code[2].line, 7);
  EXPECT_EQ(t->code[3].label, ".L_x_0");
  EXPECT_EQ(t->find(0x20), &t->code[2]);
  EXPECT_EQ(t->find(0x24), nullptr);
  EXPECT_EQ(t->find(0x40), nullptr);
  EXPECT_EQ(read_disassembly(kDisassembly, "other")->code.size(), 1u);
  EXPECT_FALSE(read_disassembly(kDisassembly, "third"));
  EXPECT_FALSE(read_disassembly("", "add"));
}

TEST(LineTable, NamesOutsideOfAscii) {
  EXPECT_EQ(ptx_lines(".visible .entry $6838$(\n)\n{\n\tret;\n}\n").function, "核");
  const auto t = read_disassembly(".text.$6838$:\n        /*0000*/   EXIT ;\n", "核");
  ASSERT_TRUE(t);
  EXPECT_EQ(t->function, "核");
}

TEST(LineTable, Opcodes) {
  EXPECT_EQ(opcode("@!P0 FMUL R14, R14, 0.5"), "FMUL");
  EXPECT_EQ(opcode("EXIT"), "EXIT");
  EXPECT_EQ(opcode("ret;"), "ret");
  EXPECT_EQ(opcode("@P0"), "");
  EXPECT_EQ(opcode(""), "");
}

TEST(LineTable, CountsByLine) {
  LineTable t;
  t.files = {"a.py"};
  t.code = {{0, -1, 0, "NOP", ""},
            {16, 0, 5, "FADD R0, R1, R2", ""},
            {32, 0, 3, "LDG R0, [R1]", ""},
            {48, 0, 5, "@P0 FMUL R0, R1, R2", ""},
            {64, 0, 5, "FMUL R0, R1, R2", ""}};
  auto counts = count_by_line(t);
  ASSERT_EQ(counts.size(), 3u);
  EXPECT_EQ(counts[0].file, -1);
  EXPECT_EQ(counts[1].line, 3);
  EXPECT_EQ(counts[2].line, 5);
  EXPECT_EQ(counts[2].instructions, 3);
  EXPECT_EQ(counts[2].opcodes, (std::vector<std::pair<std::string, int64_t>>{{"FMUL", 2}, {"FADD", 1}}));
  EXPECT_TRUE(count_by_line({}).empty());
}

TEST(LineTable, BytesThatAreNoCubinHaveNoCode) {
  EXPECT_FALSE(code_bytes("", "f"));
  EXPECT_FALSE(code_bytes("\177ELF", "f"));
  EXPECT_FALSE(code_bytes(std::string(4096, '\0'), "f"));
}

}  // namespace
}  // namespace kiln::profiler
