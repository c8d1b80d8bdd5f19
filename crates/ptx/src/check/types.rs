//! The operand types that an instruction type accepts. PTX ISA §9.4, §9.4.1.
//!
//! Invariant: these functions are the manual's Tables 23 to 25, derived from the notes to them.

use crate::isa::{Ty, TyKind};

/// The relation between the widths of operand and instruction type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// The widths are equal (Table 23).
    Equal,
    /// A register may be wider than the instruction type: `ld`, `st`, `cvt` (Tables 24 and 25).
    OrWider,
}

/// Whether a register of type `operand` is accepted for `wanted`.
pub(super) fn accepts(wanted: Ty, operand: Ty, width: Width) -> bool {
    if wanted == operand {
        return true;
    }
    let (want, have) = (wanted.kind(), operand.kind());
    if matches!(want, TyKind::Pred | TyKind::Opaque) || matches!(have, TyKind::Pred | TyKind::Opaque) {
        return false;
    }
    let equal = register_bits(wanted) == operand.bits();
    let wide = register_bits(wanted) < operand.bits() && width == Width::OrWider;
    match (want, have) {
        (TyKind::Bits, _)
        | (TyKind::Unsigned | TyKind::Signed, TyKind::Bits | TyKind::Unsigned | TyKind::Signed) => {
            equal || wide
        }
        (TyKind::Float, TyKind::Bits) => equal || wide,
        (TyKind::Float, TyKind::Float) => equal && scalar_format(wanted) == scalar_format(operand),
        (TyKind::Float, TyKind::Unsigned | TyKind::Signed) => equal && packed_in_integer(wanted),
        (TyKind::Unsigned | TyKind::Signed, TyKind::Float) => false,
        (TyKind::Pred | TyKind::Opaque, _) | (_, TyKind::Pred | TyKind::Opaque) => false,
    }
}

/// The width of the register for a value of this type: at least 8 bits.
fn register_bits(ty: Ty) -> u32 {
    ty.bits().max(8)
}

/// Formats of equal width that are not interchangeable: `.f16` and `.bf16`. `.tf32` is held as `.f32`.
fn scalar_format(ty: Ty) -> Ty {
    if ty == Ty::Tf32 { Ty::F32 } else { ty }
}

/// Formats without registers of their own, which are held in untyped or integer registers.
fn packed_in_integer(ty: Ty) -> bool {
    matches!(ty, Ty::E4m3 | Ty::E5m2 | Ty::E4m3x2 | Ty::E5m2x2 | Ty::Tf32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 15] = [
        "b8", "b16", "b32", "b64", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64",
    ];

    /// Table 24 of PTX ISA 6.4, row by row: `.` is invalid, anything else is allowed.
    const TABLE_24: [(&str, &str); 15] = [
        ("b8", "-ccc-ccc-cccccc"),
        ("b16", ".-cc.-cc.-cc-cc"),
        ("b32", "..-c..-c..-c.-c"),
        ("b64", "...-...-...-..-"),
        ("s8", "-ccc-ccc-ccc..."),
        ("s16", ".-cc.-cc.-cc..."),
        ("s32", "..-c..-c..-c..."),
        ("s64", "...-...-...-..."),
        ("u8", "-ccc-ccc-ccc..."),
        ("u16", ".-cc.-cc.-cc..."),
        ("u32", "..-c..-c..-c..."),
        ("u64", "...-...-...-..."),
        ("f16", ".-cc........-.."),
        ("f32", "..-c.........-."),
        ("f64", "...-..........-"),
    ];

    #[test]
    fn relaxed_sizes_are_those_of_table_24() {
        for (row, cells) in TABLE_24 {
            for (name, cell) in NAMES.iter().zip(cells.chars()) {
                let (want, have) = (Ty::from_name(row).unwrap(), Ty::from_name(name).unwrap());
                assert_eq!(accepts(want, have, Width::OrWider), cell != '.', "{row} {name}");
                assert_eq!(accepts(want, have, Width::Equal), cell == '-', "{row} {name}");
            }
        }
    }

    #[test]
    fn predicates_agree_with_predicates_alone() {
        assert!(accepts(Ty::Pred, Ty::Pred, Width::Equal));
        assert!(!accepts(Ty::B32, Ty::Pred, Width::OrWider));
        assert!(!accepts(Ty::Pred, Ty::B8, Width::OrWider));
    }
}
