// clang includes this file; overloads.h has the declarations that clang needs from it.
