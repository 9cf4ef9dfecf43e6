annotations = division = print_function = absolute_import = unicode_literals = generators = with_statement = True
