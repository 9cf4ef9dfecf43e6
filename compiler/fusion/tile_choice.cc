#include "compiler/fusion/tile_choice.h"

#include <algorithm>
#include <bit>

#include "compiler/fusion/grouping.h"
#include "compiler/fusion/split.h"
#include "compiler/fusion/writer.h"

namespace kiln::fusion {

namespace {

constexpr int64_t kBytesPerLoad = 16;
constexpr int64_t kProgramsPerProcessor = 2;
constexpr int64_t kMostRowBytes = 48 << 10;  // of a row that a program holds at once without filling its registers
// Of the only tensor that differs from row to row, which takes little to read again (a layer norm of 2297 x 10304
// floats on an H200: 75.7 us held, 53.7 reloaded; an RMS norm of 286 x 9408 11.7 and 10.5; with a residual 10 % more
// reloaded).
constexpr int64_t kMostOnlyRowBytes = 32 << 10;
constexpr int64_t kSpreadColumns = 4096;  // of a row that twice the threads take, whatever all rows share beside it

/// Columns of a block that a row of so many reaches, in steps coarse enough for rows of similar lengths to share a
/// kernel; 0 where it is about all of them. Registers beyond are constants, with which nothing is computed. Short rows
/// share one kernel, unless they take longer to compute than their memory.
int64_t held_columns(int64_t n_cols, int64_t block, bool costly) {
  constexpr int64_t kShortCostlyRow = 256;  // a thread of the warp that takes it has two loads of 16 bytes
  if (block <= (costly ? kShortCostlyRow : kShortRow)) return 0;
  const int64_t step = block / 16, held = cdiv(n_cols, step) * step;
  return held * 8 <= block * 7 ? held : 0;
}

}  // namespace

// On a GPU a thread has two loads of 16 bytes of a tensor in flight: with one the memory waits for threads, with four
// their registers leave every other thread no room (a chain of halves on an H200: 429, 369 and 385 us for one, two and
// four). Where all programs are there at once, twice as many with one load each have as much in flight, and twice the
// warps to compute. On a CPU a tile stays in the first-level cache.
ElementTile element_tile(const Machine& machine, int64_t count, int widest, int64_t scattered) {
  constexpr int kWarps = 4;
  constexpr int64_t kProgramsAtOnce = 8;  // on a multiprocessor
  if (!machine.gpu()) return {2048, 4};
  constexpr int64_t kMostScattered = 64;  // loads of single elements that a thread has room for
  const int64_t one_load = kBytesPerLoad / widest * 32 * kWarps;
  const int64_t two = scattered * 2 * one_load > kMostScattered * 32 * kWarps ? one_load : 2 * one_load;
  auto all_at_once = [&](int64_t block) { return cdiv(count, block) < kProgramsAtOnce * machine.multiprocessors; };
  int64_t block = all_at_once(two) ? one_load : two;
  // Loads of single elements: a thread has more elements only where there are programs enough without.
  constexpr int64_t kMostLoads = 16, kLeastElements = 2;
  while (scattered * block > kMostLoads * 32 * kWarps && block > kLeastElements * 32 * kWarps && all_at_once(block))
    block /= 2;
  // Few elements: two of them in a thread, so that every processor has some.
  while (block > kLeastElements * 32 * kWarps && cdiv(count, block) < kProgramsPerProcessor * machine.multiprocessors)
    block /= 2;
  return {block, kWarps};
}

// On an H200 128 rows cost half as much as 64 where these start at odd addresses (187 x 13168 halves: 7.8 and 15.6 us),
// and nothing elsewhere. Tiles of small tensors are smaller, for every processor to have one.
CrossingTile crossing_tile(const Machine& machine, int64_t n_rows, int64_t n_cols, int64_t longest) {
  const bool gpu = machine.gpu();
  int64_t columns = std::min<int64_t>(power_of_two(n_cols), gpu ? 64 : 32), rows = gpu ? 128 : 32;
  auto is_short = [&] { return gpu && cdiv(n_rows, rows) * cdiv(n_cols, columns) < machine.multiprocessors; };
  while (rows > 32 && is_short()) rows /= 2;
  if (columns > 32 && is_short()) columns = 32;
  rows = std::min(rows, power_of_two(longest));
  constexpr int64_t kLeastElements = 1024;  // of four warps
  while (gpu && rows * columns < kLeastElements && rows < n_rows && !is_short()) rows *= 2;
  // Where the run that crosses is short: more of the columns, whose pieces are longer (an H200: 8 x 4096 x 32 halves as
  // images take 5.8 us in pieces of 64 columns and 5.1 in those of 128).
  constexpr int64_t kWideColumns = 128, kElements = 2048;
  if (gpu && columns * 2 == kWideColumns && rows * columns < kElements && n_cols % kWideColumns == 0 && !is_short())
    columns = kWideColumns;
  return {rows, columns, rows * columns >= 8192 ? 8 : 4};
}

int64_t column_block(const Machine& machine, int64_t n_cols) {
  int64_t block = 1;
  double least = 1e30;
  for (int64_t b = machine.gpu() ? 512 : 2048; b >= 8; b /= 2) {
    if (b > power_of_two(n_cols)) continue;
    const double waste = static_cast<double>(cdiv(n_cols, b) * b) / static_cast<double>(std::max<int64_t>(1, n_cols));
    if (waste < least * 0.94) least = waste, block = b;
  }
  return block;
}

RowTile row_tile(const Machine& machine, const RowWork& w) {
  RowTile t;
  const bool gpu = machine.gpu();
  const int64_t processors = machine.multiprocessors;
  t.block = power_of_two(w.n_cols);
  constexpr int64_t kWidestWindow = 512, kMostUnrolled = 64;
  if (gpu && w.windows && w.splits == 1 && w.n_cols <= kWidestWindow && !w.stores_rows) {
    // A thread takes the elements of its windows one after the other: what its neighbours read comes from the cache,
    // and where an element is follows from a number that all threads share.
    t.unrolled = t.known = w.n_cols <= kMostUnrolled;
    // Written out, loads of all elements are under way: of 4 x 49 a thread has 245 registers, of 49 and of 2 x 25 72.
    const int64_t each = t.unrolled ? std::clamp<int64_t>(kMostUnrolled / std::max<int64_t>(1, w.n_cols), 1, 4) : 4;
    t.block = 1;
    t.warps = 4;
    t.rows = 32 * t.warps * static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(each)));
    while (t.rows > 32 * t.warps && cdiv(w.n_rows, t.rows) < kProgramsPerProcessor * processors) t.rows /= 2;
    t.loop = true;
    return t;
  }
  if (!w.along) {
    // Rows lie side by side: a tile takes whole cache lines of them.
    t.rows = std::min<int64_t>(power_of_two(w.n_rows), gpu ? 256 / w.widest : 256);
    while (gpu && t.rows > 16 && cdiv(w.n_rows, t.rows) * w.splits < processors) t.rows /= 2;
    // Short sums, as of the parts of a product: more of them in a program, while all processors have some.
    constexpr int64_t kLeastElements = 2048;
    while (gpu && t.rows * t.block < kLeastElements && t.rows * 2 <= power_of_two(w.n_rows) &&
           cdiv(w.n_rows, t.rows * 2) * w.splits >= 4 * processors)
      t.rows *= 2;
    // Columns that are read again after a reduction are kept, where a program's registers hold all of whole lines.
    constexpr int64_t kMostKept = 8192, kLineBytes = 128;
    if (gpu && w.splits == 1 && (w.stores_rows || w.depth > 1) && w.tensors <= 2 && t.block * t.rows > 4096 &&
        t.block * (kLineBytes / w.widest) <= kMostKept) {
      t.rows = std::min(t.rows, kMostKept / t.block);
      t.warps = static_cast<int>(std::clamp<int64_t>(t.rows * t.block / 1024, 1, 8));
      return t;
    }
    t.block = std::min<int64_t>(t.block, std::clamp<int64_t>(4096 / t.rows, 1, 256));
    // Few programs: each has more columns in flight (13 sums of 576 rows of 768 halves on an H100, which are 156
    // programs: 19.7 us with 64 columns at a time).
    constexpr int64_t kMostInFlight = 32 << 10;  // bytes of a tensor
    const int64_t programs = cdiv(w.n_rows, t.rows) * w.splits;
    const bool few = gpu && programs < kProgramsPerProcessor * processors;
    while (few && t.rows * t.block * w.widest * 2 <= kMostInFlight && t.block * w.splits < w.n_cols &&
           cdiv(w.n_cols, t.block * 2) * t.block * 2 * 8 <= w.n_cols * 9)
      t.block *= 2;
    t.loop = w.splits > 1 || t.block < w.n_cols;  // a part has a loop even if a block holds it
    t.warps = static_cast<int>(std::clamp<int64_t>(t.rows * t.block / 512, 1, few ? 16 : 8));
    // A column that is read once waits for one load from memory: eight elements per thread have it sooner than 16 (less
    // its minimum on an H200: 29 x 8703 floats take 8.7 us and 7.0, 9 x 520 halves 6.5 and 6.0). Of more than eight
    // warps the barriers cost more (two moments of 25 x 26499 halves: 8.0 and 10.0).
    if (few && !t.loop)
      t.warps = std::max(t.warps, static_cast<int>(std::clamp<int64_t>(t.rows * t.block / 256, 1, 8)));
    return t;
  }
  const bool waits = gpu && w.splits == 1 && w.stores_rows && !w.exponentials;  // for memory, and for little else
  // Registers hold a row of every tensor that is read along it, 64 of each thread's at most. A row that fills the
  // registers leaves its SM idle between its loads and its stores, where other rows wait for it; reloaded from the L2
  // cache it takes less time, unless its exponentials have to be taken again, or its elements lie at odd addresses and
  // are loaded one by one (rows to int8 on an H100: 1500 x 13087 floats take 52 us kept and 74 reloaded, x 13000 51 and
  // 46).
  const int64_t row_bytes = w.n_cols * w.widest;
  const bool large_row = row_bytes > kMostRowBytes, odd = row_bytes % kBytesPerLoad != 0;
  // Halves are widened, and beside what all rows share fill as many registers as floats (on an H200 a layer norm of
  // 1872 x 14016 takes 45.2 us reloaded and 56.9 kept; without weight and bias, of 643 x 14336, 19.8 and 16.0).
  const bool fills = w.of_rows == 1 && w.tensors > 1 && w.depth > 1 && w.n_cols * std::max(w.widest, 4) > kMostRowBytes;
  const bool reloads = large_row || fills || (w.of_rows == 1 && row_bytes > kMostOnlyRowBytes);
  // With as many rows as processors: fewer wait less for what spills than for a loop's loads (sampling from 5 rows of
  // 32000 floats on an H200: 19 us kept and 34 by pieces; the distillation of 142 such rows 50 and 37).
  constexpr int64_t kMostHeldBytes = 4 * kMostColumns;
  const bool spills = w.tensors * t.block * std::min(w.widest, 4) > kMostHeldBytes && w.n_rows >= processors;
  const bool crowded =
      (gpu && t.block >= kMostColumns && (!w.exponentials || w.tensors * t.block > 2 * kMostColumns || spills)) ||
      (waits && reloads && !odd && w.n_rows > processors);
  // Two loads of 16 bytes per thread, as for elements, while what is read beside the row leaves registers for that; at
  // most 16 warps, which wait for each other less. With 64 elements per thread the row waits in shared memory. A row of
  // 1024 needs one warp and no barrier, but two warps have what lies beside it sooner.
  // What all rows share comes from the cache once its row is reduced, and needs registers only then (a layer norm of
  // 6824 x 2558 halves on an H200: 29.0 us, spread 26.0; of more than 4096 columns 8 % more).
  const bool shares = w.of_rows == 1 && t.block == kSpreadColumns;
  const bool spread = t.block == kShortRow ? w.tensors > 1 : t.block > kShortRow && (w.tensors <= 2 || shares);
  const int64_t per_thread = spread ? 16 : 32;
  // Of halves whose functions are few, eight: beside 16 warps no other program has room (a layer norm written out of
  // 3000 x 11008 on an H200: 42 and 45 us, RMS norm 37 and 40, but softmax 45 and 44).
  const int64_t of_one_row = w.widest > 2 || w.exponentials ? 16 : 8;
  const int64_t most_warps = w.tensors <= 2 && t.block * w.widest <= 2 * kMostColumns ? of_one_row : 32;
  if (w.splits > 1 || t.block > kMostColumns || crowded) {
    // Two loads of 16 bytes for each thread: with more of them, no second program has room beside it (rows of 12720
    // floats on an H200: 42 us with four and 38 with two).
    t.block = std::min<int64_t>(t.block, waits && w.widest <= 2 ? 2 * kSplitUnit : kSplitUnit);
    if (w.splits > 1) t.block = std::min(t.block, power_of_two(cdiv(w.n_cols, w.splits)));
    // A part is whole blocks: of as many as leave the last one something.
    auto part = [&] { return cdiv(cdiv(w.n_cols, w.splits), t.block) * t.block; };
    while (gpu && w.splits > 1 && w.n_rows == 1 && t.block > kShortRow && part() * (w.splits - 1) >= w.n_cols)
      t.block /= 2;
    t.loop = true;
    // With so many loads for each, that their registers leave room for other threads.
    const int64_t elements = w.tensors > 16 ? 2 : w.tensors > 8 ? 4 : 8;
    if (gpu && !waits && (elements < 8 || (w.exponentials && w.tensors >= 2)))
      t.block = std::min(t.block, 8 * 32 * elements);
    t.warps = waits ? 16 : static_cast<int>(std::clamp<int64_t>(t.block / (32 * (gpu ? elements : 8)), 1, 8));
    // Few rows: as many elements of each thread, and more threads for each row.
    while (gpu && !waits && w.splits == 1 && t.warps >= 8 && t.warps < 32 &&
           w.n_rows * t.warps < kWarpsPerProcessor * processors && t.block * 4 < w.n_cols)
      t.warps *= 2, t.block *= 2;
    t.known = waits && t.block * 4 >= w.n_cols;
    return t;
  }
  // Short rows share a program, but on a CPU, where loops over one row at a time are faster, and where there are so few
  // that processors would have none.
  constexpr int kLeastElements = 256;  // of a program
  // Rows that are not stored leave registers for twice as many, or more where they are of one or two tensors: memory
  // waits for programs that end after one load each (1.7 million rows of 64 halves, masked, on an H200: 140 us with 16
  // of them in a program).
  const int64_t times = w.stores_rows || t.block >= kShortRow || w.computes ? 1
                        : w.tensors <= 2 && !w.exponentials && !w.costly    ? 4
                                                                            : 2;
  if (gpu) t.rows = std::clamp<int64_t>(times * kShortRow / t.block, 1, power_of_two(w.n_rows));
  // A GPU begins a program each 1.2 ns, in which its memory moves some 4 KB. Of rows that are less, a program has twice
  // as many, with the same threads (halves to float8 and a scale on an H200: 254996 groups of 128 take 41.4 us in
  // programs of 3 KB, 176379 29.6; two rows of a thread move as fast as one).
  constexpr int64_t kBytesOfProgram = 4 << 10, kLeastBlock = 64;
  const bool brief = gpu && w.splits == 1 && w.stores_rows && !w.exponentials && !w.costly && t.rows > 1 &&
                     t.block >= kLeastBlock && w.bytes > 0 && t.rows * t.block * w.bytes < kBytesOfProgram &&
                     cdiv(w.n_rows, 2 * t.rows) >= kWarpsPerProcessor * processors;
  // Of 4 KB they begin no sooner than their memory arrives: one has the rows, and the threads, of two (an RMS norm of
  // 65536 rows of 512 halves on an H200: 42.7 us, by torch.compile 36.4).
  const bool tight = gpu && w.splits == 1 && w.stores_rows && !w.exponentials && !w.costly && t.rows > 1 && !brief &&
                     t.rows * t.block * w.bytes == kBytesOfProgram &&
                     cdiv(w.n_rows, 2 * t.rows) >= kWarpsPerProcessor * processors;
  if (brief || tight) t.rows *= 2;
  while (!w.alone && t.rows > 1 && t.rows * t.block > kLeastElements &&
         cdiv(w.n_rows, t.rows) < kProgramsPerProcessor * processors)
    t.rows /= 2;
  if (gpu) t.held = held_columns(w.n_cols, t.block, w.costly || w.computes);
  // At least half of what is held, or of the block: so that a thread has 32 columns of a wide row at most.
  int64_t elements = t.held > 0 && t.rows == 1 ? power_of_two(t.held / 2 + 1) : t.rows * t.block;
  // Warps share rows among them, and a reduction stays inside of one (softmax of 838860 x 10 on an H100: 162 us with
  // 32 elements per thread, 85 with 16, 41 with 8; of 400000 x 33 42, 41 and 42).
  const int64_t of_short_rows = brief           ? per_thread
                                : times > 1     ? std::min(8 * times, per_thread)
                                : t.block <= 32 ? 8
                                                : 16;
  if (gpu && t.rows > 1) elements *= per_thread / of_short_rows;
  if (spread && t.held == 0 && t.block > 2 * kShortRow) elements /= 2;
  t.warps = static_cast<int>(std::clamp<int64_t>(elements / (32 * per_thread), 1, most_warps));
  // Few programs: a warp for each row, down to four elements per thread.
  while (gpu && t.warps < t.rows && t.rows * t.block >= 256 * t.warps &&
         cdiv(w.n_rows, t.rows) * t.warps < kWarpsPerProcessor * processors)
    t.warps *= 2;
  // Of functions of many instructions a thread has 16 elements at most, and 8 where that leaves warps too few (log
  // returns on an H100: 4000 x 4097 takes 72 us with 32 and 64 with 16, 1000 x 1003 12.5 with 16 and 10 with 8).
  const int64_t row = t.held > 0 ? t.held : t.block;
  auto share = [&](int64_t least) { return row > least * 32 * t.warps && t.warps < 16; };
  constexpr int64_t kRounds = 4;  // of programs, beyond which all that counts is how many instructions there are
  while (gpu && w.costly && t.rows == 1 &&
         (share(16) || (share(8) && w.n_rows * t.warps < kRounds * kWarpsPerProcessor * processors)))
    t.warps *= 2;
  // Of many exact divisions a thread has fewer elements: they take fewer registers, and more warps share a processor
  // (3146 x 3000 floats on an H200: eight divisions with 32 elements of a thread take 201 us, with eight 186; four take
  // 52 and 48).
  constexpr int64_t kDivisionsOfThread = 64;
  while (gpu && t.rows == 1 && t.warps < 16 && row * w.divisions > kDivisionsOfThread * 32 * t.warps) t.warps *= 2;
  // Few rows: more warps for each, down to one load of 16 bytes per thread (the largest of 34 x 921 floats on an H200:
  // 7.2 us with one warp, 5.4 with eight). Of more than 16 the barriers cost what their loads gain (rows to uint8 on an
  // H200: 25 x 5120 floats take 5.7 us with 32 warps and 5.1 with 16).
  constexpr int kMostOfRow = 16;
  constexpr int64_t kLeastOfWarps = 512;  // columns that a warp does not take with one load
  while (gpu && t.rows == 1 && t.block >= kLeastOfWarps && t.warps < kMostOfRow &&
         w.n_rows * t.warps < kWarpsPerProcessor * processors && t.block >= 64 * t.warps * kBytesPerLoad / w.widest)
    t.warps *= 2;
  // A row that is not kept leaves registers for one more program on each multiprocessor: rows of 14336 halves take 36
  // us instead of 49 (RMS norm, 64 MB, H200). With two reductions, reading it three times costs as much.
  t.again = waits && t.block == kAgainColumns && w.tensors <= 2 && w.depth == 1 && w.n_rows >= 2 * processors &&
            !(large_row && odd);
  if (t.again) t.warps = 8;
  return t;
}

namespace {

// Columns that are scanned, side by side in memory.
constexpr int64_t kBytesHeld = 64 << 10;        // of a program's registers, for each tensor
constexpr int64_t kBytesOfWarp = 8 << 10;       // of these
constexpr int64_t kBytesOfBlock = 32 << 10;     // of a tile in a loop
constexpr int64_t kBytesOnTheirWay = 64 << 10;  // to a processor, so that its memory is busy

/// How many of them a program has room for, and how many leave each processor one program.
int64_t rows_held(const RowWork& w) {
  const int64_t bytes = power_of_two(w.n_cols) * std::max(4, w.widest) * std::max<int64_t>(1, w.tensors);
  return std::min(power_of_two(w.n_rows), std::max<int64_t>(1, kBytesHeld / bytes));
}
int64_t rows_wanted(const RowWork& w, int64_t processors) {
  return std::min(power_of_two(w.n_rows), power_of_two(cdiv(w.n_rows, processors)));
}

/// Whether a program holds its columns whole: with a whole sector of each row, or as many as it is to have.
bool holds_whole(const RowWork& w, int64_t processors) {
  constexpr int64_t kSector = 32;
  return power_of_two(w.n_cols) <= kWholeScan &&
         (rows_held(w) * w.read >= kSector || rows_held(w) >= rows_wanted(w, processors));
}

}  // namespace

RowTile scan_tile(const Machine& machine, const RowWork& w) {
  RowTile t;
  int most_warps = 8;
  const bool gpu = machine.gpu();
  const int64_t processors = machine.multiprocessors;
  t.block = power_of_two(w.n_cols);
  if (w.looks_back && w.across) {
    // 128 bytes of a thread: 5000 x 9000 halves on an H200 in 69 us, 121 by twice the warps. Halves of rows that begin
    // within a word are loaded one by one, and 64 bytes of them are in flight: 3000 x 7001 in 42 us and 52.
    constexpr int64_t kLine = 128;  // bytes of each column's part
    const int64_t bytes = std::max(w.widest, w.read), taken = w.within_words ? kLine / 2 : kLine;
    t.block = w.chunk;
    t.rows = std::min(power_of_two(w.n_rows), (w.odd_words ? 2 : 1) * kLine / bytes);
    t.warps = static_cast<int>(std::clamp<int64_t>(t.rows * t.block * bytes / (32 * taken), 4, 16));
    return t;
  }
  if (w.looks_back || w.in_runs) {
    // 64 elements to a thread rather than 32, if no other tensor takes registers beside them and the sums are not wider
    // than what is read: fewer threads add their totals up and wait (an H200: 2^26 floats in 143 us and 146, 2^24 in
    // 43.3 and 43.7; copies 131 and 37.8). Of halves 128, two to a register.
    t.block = w.looks_back ? w.chunk : power_of_two(columns_of_parts(w.n_rows, w.n_cols));
    const int64_t alone = w.widest == 2 && !w.shifted ? 4096 : w.widest == 8 && w.shifted ? 1024 : 2048;
    // Four warps and more, but for many parts of rows that begin where no vector does, which are short: fewer threads
    // have fewer totals to add up (an H200: 1000 x 65537 halves in 84.1 us by four warps, 78.4 by two).
    constexpr int64_t kRounds = 8;  // of programs
    const bool many = w.looks_back && w.shifted && w.tensors <= 1 && w.widest <= 4 &&
                      w.n_rows * w.splits >= kRounds * kProgramsPerProcessor * processors;
    t.warps = static_cast<int>(
        std::max<int64_t>(many ? 1 : 4, t.block / (w.tensors > 1 || w.widest > std::max(4, w.read) ? 1024 : alone)));
    // Few rows: 16 elements to a thread.
    while (!w.looks_back && t.warps < 32 && t.block >= 1024 * t.warps &&
           w.n_rows * t.warps < kWarpsPerProcessor * processors)
      t.warps *= 2;
    // In runs of 16 bytes. Eight-byte sums of narrow elements are scanned first and held in registers: their runs would
    // be short in what is read, or long in what is held.
    if (w.widest <= 4 || w.read >= 4) t.run = kBytesPerLoad / w.widest;
    return t;
  }
  if (w.along) {
    // Rows that leave processors idle are taken whole: a loop waits for memory at each block.
    if (gpu && w.splits == 1 && w.n_rows <= processors && t.block <= kMostWholeScan)
      most_warps = 32;
    else
      t.block = std::min<int64_t>(t.block, kSplitUnit);
    if (gpu) t.rows = std::clamp<int64_t>(kShortRow / t.block, 1, power_of_two(w.n_rows));
    while (t.rows > 1 && cdiv(w.n_rows, t.rows) < kProgramsPerProcessor * processors) t.rows /= 2;
  } else if (gpu && w.splits == 1 && holds_whole(w, processors)) {  // rows lie side by side
    t.rows = std::min(rows_held(w), rows_wanted(w, processors));
    const int64_t bytes = t.rows * t.block * std::max(4, w.widest);
    t.warps = static_cast<int>(std::clamp<int64_t>(bytes / kBytesOfWarp, 1, 8));
    while (t.warps < 32 && t.rows * t.block >= 256 * t.warps &&
           cdiv(w.n_rows, t.rows) * t.warps * 4 < kWarpsPerProcessor * processors)
      t.warps *= 2;
    return t;
  } else {  // a tile takes whole cache lines of them
    t.rows = std::min<int64_t>(power_of_two(w.n_rows), gpu ? std::min<int64_t>(256 / w.widest, kScanRows) : kScanRows);
    const int64_t part = w.chunk > 0 ? w.chunk : w.n_cols;
    // Half a line of each where programs are few otherwise; a whole one where each begins within a sector, which two
    // programs then read, and each processor has one.
    auto programs = [&] { return cdiv(w.n_rows, t.rows) * w.splits; };
    auto piece = [&] { return t.rows * std::max(4, w.widest); };
    constexpr int64_t kLine = 128, kSector = 32;
    const bool odd = w.n_rows * w.read % kSector != 0;
    while (gpu && piece() > kLine / 2 && programs() < kProgramsPerProcessor * processors &&
           !(odd && piece() <= kLine && programs() >= processors))
      t.rows /= 2;
    t.block = std::min<int64_t>(t.block, std::clamp<int64_t>(4096 / t.rows, 1, kScanRows));
    // As few blocks as keep enough bytes on their way, with more warps: each waits for the sums of the one before it.
    // Of at most 16 elements to a thread, whose addresses take registers too.
    auto bytes = [&] { return t.rows * t.block * std::max(4, w.widest); };
    while (gpu && bytes() * 2 <= kBytesOfBlock && t.block * 2 <= part && w.chunk % (t.block * 2) == 0 &&
           programs() * bytes() < kBytesOnTheirWay * processors)
      t.block *= 2;
    t.loop = t.block < w.n_cols;
    t.warps = static_cast<int>(std::clamp<int64_t>(bytes() / (2 << 10), 1, gpu ? 16 : most_warps));
    constexpr int64_t kMostAhead = 64 << 10;  // bytes in shared memory that leave room for other programs
    t.ahead = gpu && t.loop && w.read >= 4 && 2 * bytes() * w.tensors <= kMostAhead;
    // For a second program beside it. ptxas would hold an address for each element, and take twice as many.
    constexpr int kWarpsOfHalf = 16, kRegistersOfHalf = 64;
    if (gpu && t.loop && t.warps == kWarpsOfHalf && w.tensors == 1) t.registers = kRegistersOfHalf;
    return t;
  }
  t.loop = t.block < w.n_cols;
  t.warps = static_cast<int>(std::clamp<int64_t>(t.rows * t.block / 512, 1, most_warps));
  while (gpu && w.along && t.warps < 8 && t.rows * t.block >= 256 * t.warps &&
         cdiv(w.n_rows, t.rows) * t.warps < kWarpsPerProcessor * processors)
    t.warps *= 2;
  return t;
}

}  // namespace kiln::fusion
