//! Extended-precision integer arithmetic: `add.cc` to `madc` (PTX ISA 6.4 §9.7.2).
//!
//! The carry flag CC.CF is a value: the last argument and the second result. The manual calls it the borrow
//! after a subtraction. Devices subtract by adding the complement, a + ~b + 1, and keep the carry of that
//! sum, which is the inverted borrow. Programs that mix `add.cc` with `subc`, or `sub.cc` with `addc`, rely
//! on this (reading A70); chains of one kind have the same result either way.
//!
//! **Invariant:** the carry is always that of an unsigned n-bit addition, for signed types too; only the
//! product in `mad.hi` depends on signedness.

use crate::int::Int;

/// Like `per_type!`, for functions that return a value and a carry, and may take a carry.
macro_rules! per_type_carry {
    ($doc:tt $generic:ident $args:tt $cf:tt -> $out:tt: $($name:ident $ty:ty),+ $(,)?) => {
        $(per_type_carry! { @one $doc $generic $args $cf $out $name $ty })+
    };
    (@one [$(#[$doc:meta])*] $generic:ident ($($arg:ident),*) ($($cf:ident)?) (d, cf) $name:ident $ty:ty) => {
        $(#[$doc])*
        #[inline]
        #[must_use]
        pub fn $name($($arg: $ty),* $(, $cf: bool)?) -> ($ty, bool) {
            $generic($($arg),* $(, $cf)?)
        }
    };
    (@one [$(#[$doc:meta])*] $generic:ident ($($arg:ident),*) ($($cf:ident)?) (d) $name:ident $ty:ty) => {
        $(#[$doc])*
        #[inline]
        #[must_use]
        pub fn $name($($arg: $ty),* $(, $cf: bool)?) -> $ty {
            $generic($($arg),* $(, $cf)?).0
        }
    };
}

per_type_carry! {
    [/// `add.cc`: d = a + b modulo 2^n, and the carry out.
     ///
     /// # Source
     /// PTX ISA §9.7.2.1.
    ]
    add_cc(a, b)() -> (d, cf): add_cc_u32 u32, add_cc_s32 i32, add_cc_u64 u64, add_cc_s64 i64
}
per_type_carry! {
    [/// `addc.cc`: d = a + b + CF modulo 2^n, and the carry out of that three-operand sum.
     ///
     /// # Source
     /// PTX ISA §9.7.2.2.
    ]
    addc(a, b)(cf) -> (d, cf): addc_cc_u32 u32, addc_cc_s32 i32, addc_cc_u64 u64, addc_cc_s64 i64
}
per_type_carry! {
    [/// `addc`: d = a + b + CF modulo 2^n; the flag stays as it is.
     ///
     /// # Source
     /// PTX ISA §9.7.2.2.
    ]
    addc(a, b)(cf) -> (d): addc_u32 u32, addc_s32 i32, addc_u64 u64, addc_s64 i64
}
per_type_carry! {
    [/// `sub.cc`: d = a - b modulo 2^n, and the carry out of a + ~b + 1 (true when a >= b, unsigned).
     ///
     /// # Source
     /// PTX ISA §9.7.2.3; the flag as devices have it.
    ]
    sub_cc(a, b)() -> (d, cf): sub_cc_u32 u32, sub_cc_s32 i32, sub_cc_u64 u64, sub_cc_s64 i64
}
per_type_carry! {
    [/// `subc.cc`: d = a + ~b + CF modulo 2^n, and the carry out of that three-operand sum.
     ///
     /// # Source
     /// PTX ISA §9.7.2.4; the flag as devices have it.
    ]
    subc(a, b)(cf) -> (d, cf): subc_cc_u32 u32, subc_cc_s32 i32, subc_cc_u64 u64, subc_cc_s64 i64
}
per_type_carry! {
    [/// `subc`: d = a + ~b + CF modulo 2^n; the flag stays as it is.
     ///
     /// # Source
     /// PTX ISA §9.7.2.4; the flag as devices have it.
    ]
    subc(a, b)(cf) -> (d): subc_u32 u32, subc_s32 i32, subc_u64 u64, subc_s64 i64
}
per_type_carry! {
    [/// `mad.lo.cc`: d = (low n bits of a * b) + c modulo 2^n, and the carry out of that addition.
     ///
     /// # Source
     /// PTX ISA §9.7.2.5; it prints bits 31..0 for all types, read as n-1..0.
    ]
    mad_lo_cc(a, b, c)() -> (d, cf): mad_lo_cc_u32 u32, mad_lo_cc_s32 i32, mad_lo_cc_u64 u64, mad_lo_cc_s64 i64
}
per_type_carry! {
    [/// `mad.hi.cc`: d = (bits 2n-1..n of a * b) + c modulo 2^n, and the carry out of that addition.
     ///
     /// The product is signed for the signed types; the carry is that of the unsigned addition of the two
     /// patterns.
     ///
     /// # Source
     /// PTX ISA §9.7.2.5; it prints bits 63..32 for all types, read as 2n-1..n.
    ]
    mad_hi_cc(a, b, c)() -> (d, cf): mad_hi_cc_u32 u32, mad_hi_cc_s32 i32, mad_hi_cc_u64 u64, mad_hi_cc_s64 i64
}
per_type_carry! {
    [/// `madc.lo.cc`: d = (low n bits of a * b) + c + CF modulo 2^n, and the carry out of that three-operand sum.
     ///
     /// # Source
     /// PTX ISA §9.7.2.6.
    ]
    madc_lo(a, b, c)(cf) -> (d, cf): madc_lo_cc_u32 u32, madc_lo_cc_s32 i32, madc_lo_cc_u64 u64, madc_lo_cc_s64 i64
}
per_type_carry! {
    [/// `madc.hi.cc`: d = (bits 2n-1..n of a * b) + c + CF modulo 2^n, and the carry out of that three-operand sum.
     ///
     /// # Source
     /// PTX ISA §9.7.2.6.
    ]
    madc_hi(a, b, c)(cf) -> (d, cf): madc_hi_cc_u32 u32, madc_hi_cc_s32 i32, madc_hi_cc_u64 u64, madc_hi_cc_s64 i64
}
per_type_carry! {
    [/// `madc.lo`: d = (low n bits of a * b) + c + CF modulo 2^n; the flag stays as it is.
     ///
     /// # Source
     /// PTX ISA §9.7.2.6.
    ]
    madc_lo(a, b, c)(cf) -> (d): madc_lo_u32 u32, madc_lo_s32 i32, madc_lo_u64 u64, madc_lo_s64 i64
}
per_type_carry! {
    [/// `madc.hi`: d = (bits 2n-1..n of a * b) + c + CF modulo 2^n; the flag stays as it is.
     ///
     /// # Source
     /// PTX ISA §9.7.2.6.
    ]
    madc_hi(a, b, c)(cf) -> (d): madc_hi_u32 u32, madc_hi_s32 i32, madc_hi_u64 u64, madc_hi_s64 i64
}

#[inline]
fn add_cc<T: Int>(a: T, b: T) -> (T, bool) {
    a.carrying_add(b, false)
}

#[inline]
fn addc<T: Int>(a: T, b: T, cf: bool) -> (T, bool) {
    a.carrying_add(b, cf)
}

#[inline]
fn sub_cc<T: Int>(a: T, b: T) -> (T, bool) {
    a.carrying_add(b.not(), true)
}

#[inline]
fn subc<T: Int>(a: T, b: T, cf: bool) -> (T, bool) {
    a.carrying_add(b.not(), cf)
}

#[inline]
fn mad_lo_cc<T: Int>(a: T, b: T, c: T) -> (T, bool) {
    madc_lo(a, b, c, false)
}

#[inline]
fn mad_hi_cc<T: Int>(a: T, b: T, c: T) -> (T, bool) {
    madc_hi(a, b, c, false)
}

#[inline]
fn madc_lo<T: Int>(a: T, b: T, c: T, cf: bool) -> (T, bool) {
    a.product(b).0.carrying_add(c, cf)
}

#[inline]
fn madc_hi<T: Int>(a: T, b: T, c: T, cf: bool) -> (T, bool) {
    a.product(b).1.carrying_add(c, cf)
}
