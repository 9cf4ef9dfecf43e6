#include "repl/shell/cli.h"

int main(int argc, char** argv) { return kiln::repl::run(argc, argv); }
