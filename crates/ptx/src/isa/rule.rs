//! Rules about modifiers that the syntax of a row cannot express.
//!
//! Invariant: the match on [`Rule`] is exhaustive. A rule that is not about modifiers alone returns `None`
//! here and is checked in `check/`, whose match is exhaustive too.

use super::matching::{Body, OperandShape};
use super::row::Rule;
use super::ty::TyKind;
use super::{Cmp, Gate, Geom, Mods, Op, Slot, Sm, Space, Ty, Version, Word};

/// The violation of this rule by the modifiers, in a few words; `None` if there is none.
pub fn mods_error(rule: Rule, mods: &Mods) -> Option<String> {
    match rule {
        Rule::CmpForType => cmp_for_type(mods),
        Rule::SatNarrows => sat_narrows(mods),
        Rule::FtzNeedsF32 => ftz_needs_f32(mods),
        Rule::Vec128 => vec_128(mods),
        Rule::Vec256 => vec_256(mods),
        Rule::Only256 => only_256(mods),
        Rule::SameAb => same_ab(mods),
        Rule::CtypeNeedsDtype => ctype_needs_dtype(mods),
        Rule::TexGeometry => tex_geometry(mods),
        Rule::Dot
        | Rule::Shared64
        | Rule::ParamAccess
        | Rule::PackSizes
        | Rule::AddressSize
        | Rule::BarrierCount
        | Rule::CopySize
        | Rule::Fraction
        | Rule::VmadNegation
        | Rule::ClampGiven
        | Rule::SimdConstant
        | Rule::RndGiven
        | Rule::BracketsGiven
        | Rule::Deprecated
        | Rule::TexMode
        | Rule::CallSignature => None,
    }
}

/// The deprecation of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deprecation {
    /// First version that discourages it.
    pub since: Version,
    /// First target on which it is discouraged.
    pub sm: Sm,
    /// The replacement.
    pub instead: &'static str,
}

/// Whether the form with these modifiers is deprecated, under [`Rule::Deprecated`].
pub(super) fn deprecation(op: Op, mods: &Mods) -> Option<Deprecation> {
    let (since, sm, instead) = match op {
        Op::Shfl => (Version::new(6, 0), 10, "`shfl.sync`"),
        Op::Vote => (Version::new(6, 0), 10, "`vote.sync`"),
        Op::WmmaMma if mods.has(Word::Satfinite) => (Version::new(6, 4), 10, "the form without `.satfinite`"),
        Op::Ld => (Version::new(2, 2), 10, "`ld.const` without a bank"),
        Op::Mad => (Version::new(3, 1), 20, "the form with a rounding, such as `mad.rn.f32`,"),
        _ => return None,
    };
    Some(Deprecation { since, sm: Sm::new(sm), instead })
}

/// The part that ptxas refuses although the manual allows it, under the rules about this.
pub(super) fn portability(rule: Rule, mods: &Mods, shapes: &[OperandShape]) -> Option<&'static str> {
    let given = |slot: Slot| mods.given().iter().any(|(s, _)| *s == slot);
    match rule {
        Rule::ClampGiven if !given(Slot::Clamp) => Some("ptxas requires a clamp modifier"),
        Rule::RndGiven if !given(Slot::Rnd) => Some("ptxas requires a rounding modifier"),
        Rule::SimdConstant if shapes.iter().any(|o| o.body == Body::Imm) => {
            Some("ptxas accepts no constants in SIMD video instructions")
        }
        Rule::BracketsGiven => Some("ptxas requires brackets around texture and coordinates"),
        _ => None,
    }
}

/// The requirement of the rule on version and target, in addition to the gates of the columns.
pub fn gate(rule: Rule, mods: &Mods) -> Option<(&'static str, Gate)> {
    const fn since(major: u8, minor: u8, sm: u16) -> Gate {
        let (ptx, sm) = (Some(Version::new(major, minor)), Some(Sm::new(sm)));
        Gate { ptx, sm, or_map_f64: false, below: None, until: None, late: None }
    }
    let ty = mods.ty_in(Slot::Type)?;
    match rule {
        Rule::Shared64 if ty.bits() == 64 && mods.space() == Space::Shared => {
            Some(("a 64-bit atomic in `.shared`", since(2, 0, 20)))
        }
        Rule::Vec256 if wide_vector(mods) => Some(("a vector wider than `.v4.b32`", since(8, 8, 100))),
        Rule::Vec256 | Rule::Shared64 if ty == Ty::B128 && mods.get(Slot::Scope) == Some(Word::Sys) => {
            Some(("an access of 128 bits at scope `.sys`", since(8, 4, 70)))
        }
        _ => None,
    }
}

/// §9.3.1: `.bX` has `.eq` and `.ne` only; signed integers have the six ordered comparisons; unsigned ones
/// also `.lo .ls .hi .hs`; floats have the ordered six, the unordered ones, `.num` and `.nan`. Half
/// precision: A92.
fn cmp_for_type(mods: &Mods) -> Option<String> {
    let ty = mods.atype();
    let cmp = mods.cmp()?;
    let fits = match cmp {
        Cmp::Eq | Cmp::Ne => true,
        Cmp::Lt | Cmp::Le | Cmp::Gt | Cmp::Ge => ty.kind() != TyKind::Bits,
        Cmp::Lo | Cmp::Ls | Cmp::Hi | Cmp::Hs => ty.kind() == TyKind::Unsigned,
        Cmp::Equ | Cmp::Neu | Cmp::Ltu | Cmp::Leu | Cmp::Gtu | Cmp::Geu | Cmp::Num | Cmp::Nan => {
            ty.is_float()
        }
    };
    if !fits {
        return Some(format!("`.{}` does not compare `.{}`", cmp.word().text(), ty.name()));
    }
    let flushes = matches!(ty, Ty::F32 | Ty::F16 | Ty::F16x2);
    (mods.has(Word::Ftz) && !flushes).then(|| format!("`.ftz` does not apply to `.{}`", ty.name()))
}

/// §9.7.8.14: `.sat` requires a destination that cannot represent every value of the source. A98.
fn sat_narrows(mods: &Mods) -> Option<String> {
    if !mods.has(Word::Sat) {
        return None;
    }
    let (d, a) = (mods.dtype(), mods.atype());
    if d.is_float() || a.is_float() {
        return None;
    }
    let holds = match (d.is_signed(), a.is_signed()) {
        (true, true) | (false, false) => d.bits() >= a.bits(),
        (true, false) => d.bits() > a.bits(),
        (false, true) => false,
    };
    holds.then(|| format!("`.{}` holds every value of `.{}`, so nothing saturates", d.name(), a.name()))
}

/// §9.7.8.14: `.ftz` flushes single precision only. A99.
fn ftz_needs_f32(mods: &Mods) -> Option<String> {
    let none = mods.dtype() != Ty::F32 && mods.atype() != Ty::F32;
    (mods.has(Word::Ftz) && none).then(|| "`.ftz` needs `.f32` on one side".into())
}

/// §9.7.8.7: no vector is wider than 128 bits.
fn vec_128(mods: &Mods) -> Option<String> {
    let ty = mods.ty_in(Slot::Type).or(mods.ty_in(Slot::Dtype)).or(mods.ty_in(Slot::Ctype))?;
    let bits = ty.bits() * u32::from(mods.vec());
    (bits > 128).then(|| format!("`.v{}.{}` is wider than 128 bits", mods.vec(), ty.name()))
}

/// `ld`, `st`: 256 bits are for global memory, and for words of 32 or 64 bits.
fn vec_256(mods: &Mods) -> Option<String> {
    let (ty, vec) = (mods.ty_in(Slot::Type)?, mods.vec());
    let name = ty.name();
    let wide = wide_vector(mods);
    if ty == Ty::B128 && vec > 1 {
        Some("`.b128` has no vectors".into())
    } else if vec == 8 && ty.bits() != 32 {
        Some(format!("`.v8` is for elements of 32 bits, not for `.{name}`"))
    } else if wide && !matches!(mods.space(), Space::Global | Space::Generic) {
        let space = mods.space().name();
        Some(format!("`.v{vec}.{name}` is wider than 128 bits, and 256 bits are not for `.{space}`"))
    } else {
        None
    }
}

/// L2 eviction priorities require accesses of 256 bits.
fn only_256(mods: &Mods) -> Option<String> {
    let (ty, vec) = (mods.ty_in(Slot::Type)?, mods.vec());
    let bits = ty.bits() * u32::from(vec);
    (bits != 256).then(|| format!("`.v{vec}.{}` has {bits} bits, and the priority needs 256", ty.name()))
}

/// Whether an access is of more than 128 bits.
fn wide_vector(mods: &Mods) -> bool {
    mods.ty_in(Slot::Type).is_some_and(|ty| ty.bits() * u32::from(mods.vec()) > 128)
}

/// §9.7.13.8: A and B have the same type.
fn same_ab(mods: &Mods) -> Option<String> {
    let (a, b) = (mods.ty_in(Slot::Atype), mods.ty_in(Slot::Btype));
    (a != b).then(|| "`.atype` and `.btype` must be the same".into())
}

/// §9.7.13.9: a single-precision accumulator gives a single-precision result. A154.
fn ctype_needs_dtype(mods: &Mods) -> Option<String> {
    let (c, d) = (mods.ty_in(Slot::Ctype), mods.ty_in(Slot::Dtype));
    (c == Some(Ty::F32) && d != Some(Ty::F32)).then(|| "`.ctype` `.f32` needs `.dtype` `.f32`".into())
}

/// §9.7.9.3: cubes have floating-point coordinates, multi-sample textures integer ones.
fn tex_geometry(mods: &Mods) -> Option<String> {
    let geom = mods.geom()?;
    let needed = match geom {
        Geom::Cube | Geom::Acube => Ty::F32,
        Geom::D2ms | Geom::A2dms => Ty::S32,
        Geom::D1 | Geom::D2 | Geom::D3 | Geom::A1d | Geom::A2d => return None,
    };
    let wrong = mods.ty_in(Slot::Ctype) != Some(needed);
    wrong.then(|| format!("`.{}` needs coordinates of type `.{}`", geom.word().text(), needed.name()))
}

/// The violation of this rule by the operand shapes; `written` returns an operand by its name in the form.
pub(super) fn operands_error(
    rule: Rule,
    mods: &Mods,
    written: &dyn Fn(&str) -> Option<OperandShape>,
) -> Option<String> {
    match rule {
        Rule::TexGeometry => tex_companions(mods, written),
        Rule::VmadNegation => vmad_negation(written),
        Rule::CmpForType
        | Rule::SatNarrows
        | Rule::FtzNeedsF32
        | Rule::Vec128
        | Rule::Vec256
        | Rule::Only256
        | Rule::SameAb
        | Rule::CtypeNeedsDtype
        | Rule::Dot
        | Rule::Shared64
        | Rule::ParamAccess
        | Rule::PackSizes
        | Rule::AddressSize
        | Rule::BarrierCount
        | Rule::CopySize
        | Rule::Fraction
        | Rule::ClampGiven
        | Rule::SimdConstant
        | Rule::RndGiven
        | Rule::BracketsGiven
        | Rule::Deprecated
        | Rule::TexMode
        | Rule::CallSignature => None,
    }
}

/// §9.7.9.3: cubes have no texel offsets; volumes, multi-sample textures and integer coordinates have no
/// depth reference.
fn tex_companions(mods: &Mods, written: &dyn Fn(&str) -> Option<OperandShape>) -> Option<String> {
    let geom = mods.geom()?;
    if written("e").is_some() && matches!(geom, Geom::Cube | Geom::Acube) {
        return Some(format!("`.{}` takes no texel offsets", geom.word().text()));
    }
    written("f")?;
    if matches!(geom, Geom::D3 | Geom::D2ms | Geom::A2dms) {
        return Some(format!("`.{}` takes no depth to compare with", geom.word().text()));
    }
    let integer = mods.ty_in(Slot::Ctype) == Some(Ty::S32);
    integer.then(|| "a depth comparison needs coordinates of type `.f32`".into())
}

/// §9.7.15.3: the product is negated if exactly one factor is; then `c` must not be negated. V26.
fn vmad_negation(written: &dyn Fn(&str) -> Option<OperandShape>) -> Option<String> {
    let minus = |name: &str| written(name).is_some_and(|o| o.minus);
    let both = minus("a") != minus("b") && minus("c");
    both.then(|| "either the product or `c` may be negated, not both".into())
}
