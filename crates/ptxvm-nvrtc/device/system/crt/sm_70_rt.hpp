// clang includes it; overloads.h has what clang wants of it.
