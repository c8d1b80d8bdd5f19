//! Fundamental types, state spaces, and the qualifiers of the memory model.
//!
//! Invariant: these are closed sets with the manual's names. PTX ISA §5.1, §5.2, §8.4, §8.5.

/// A fundamental type. PTX ISA §5.2.1, and the later `bf16`, `tf32`, 8-bit floats and `b128`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the variants are the manual's type names")]
pub enum Ty {
    B1,
    U2,
    S2,
    U4,
    S4,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    F32,
    F64,
    Bf16,
    Bf16x2,
    Tf32,
    E4m3,
    E5m2,
    E4m3x2,
    E5m2x2,
    U16x2,
    S16x2,
    F32x2,
    Pred,
    Texref,
    Samplerref,
    Surfref,
}

/// The kind of a type's values, which PTX ISA §9.4 compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TyKind {
    /// `.bX`: untyped bits.
    Bits,
    /// `.uX`
    Unsigned,
    /// `.sX`
    Signed,
    /// `.fX` and other floating-point formats, packed ones included.
    Float,
    /// `.pred`
    Pred,
    /// `.texref`, `.samplerref`, `.surfref`
    Opaque,
}

impl Ty {
    /// All types, in the order of the enum.
    pub const ALL: [Ty; 36] = [
        Ty::B1,
        Ty::U2,
        Ty::S2,
        Ty::U4,
        Ty::S4,
        Ty::B8,
        Ty::B16,
        Ty::B32,
        Ty::B64,
        Ty::B128,
        Ty::U8,
        Ty::U16,
        Ty::U32,
        Ty::U64,
        Ty::S8,
        Ty::S16,
        Ty::S32,
        Ty::S64,
        Ty::F16,
        Ty::F16x2,
        Ty::F32,
        Ty::F64,
        Ty::Bf16,
        Ty::Bf16x2,
        Ty::Tf32,
        Ty::E4m3,
        Ty::E5m2,
        Ty::E4m3x2,
        Ty::E5m2x2,
        Ty::U16x2,
        Ty::S16x2,
        Ty::F32x2,
        Ty::Pred,
        Ty::Texref,
        Ty::Samplerref,
        Ty::Surfref,
    ];

    /// The name without the dot: `u32`, `f16x2`, `pred`.
    pub const fn name(self) -> &'static str {
        match self {
            Ty::B1 => "b1",
            Ty::U2 => "u2",
            Ty::S2 => "s2",
            Ty::U4 => "u4",
            Ty::S4 => "s4",
            Ty::B8 => "b8",
            Ty::B16 => "b16",
            Ty::B32 => "b32",
            Ty::B64 => "b64",
            Ty::B128 => "b128",
            Ty::U8 => "u8",
            Ty::U16 => "u16",
            Ty::U32 => "u32",
            Ty::U64 => "u64",
            Ty::S8 => "s8",
            Ty::S16 => "s16",
            Ty::S32 => "s32",
            Ty::S64 => "s64",
            Ty::F16 => "f16",
            Ty::F16x2 => "f16x2",
            Ty::F32 => "f32",
            Ty::F64 => "f64",
            Ty::Bf16 => "bf16",
            Ty::Bf16x2 => "bf16x2",
            Ty::Tf32 => "tf32",
            Ty::E4m3 => "e4m3",
            Ty::E5m2 => "e5m2",
            Ty::E4m3x2 => "e4m3x2",
            Ty::E5m2x2 => "e5m2x2",
            Ty::U16x2 => "u16x2",
            Ty::S16x2 => "s16x2",
            Ty::F32x2 => "f32x2",
            Ty::Pred => "pred",
            Ty::Texref => "texref",
            Ty::Samplerref => "samplerref",
            Ty::Surfref => "surfref",
        }
    }

    /// The type of that name (without the dot).
    pub fn from_name(name: &str) -> Option<Ty> {
        Ty::ALL.into_iter().find(|t| t.name() == name)
    }

    /// Width in bits; 1 for `.pred` and `.b1`, 64 for the opaque types (a handle).
    pub const fn bits(self) -> u32 {
        match self {
            Ty::B1 | Ty::Pred => 1,
            Ty::U2 | Ty::S2 => 2,
            Ty::U4 | Ty::S4 => 4,
            Ty::B8 | Ty::U8 | Ty::S8 | Ty::E4m3 | Ty::E5m2 => 8,
            Ty::B16 | Ty::U16 | Ty::S16 | Ty::F16 | Ty::Bf16 | Ty::E4m3x2 | Ty::E5m2x2 => 16,
            Ty::B32
            | Ty::U32
            | Ty::S32
            | Ty::F32
            | Ty::F16x2
            | Ty::Bf16x2
            | Ty::Tf32
            | Ty::U16x2
            | Ty::S16x2 => 32,
            Ty::B64 | Ty::U64 | Ty::S64 | Ty::F64 | Ty::F32x2 | Ty::Texref | Ty::Samplerref | Ty::Surfref => {
                64
            }
            Ty::B128 => 128,
        }
    }

    /// Size in memory in bytes (sub-byte types and predicates have none: 0).
    pub const fn bytes(self) -> u32 {
        self.bits() / 8
    }

    /// The kind of its values.
    pub const fn kind(self) -> TyKind {
        match self {
            Ty::B1 | Ty::B8 | Ty::B16 | Ty::B32 | Ty::B64 | Ty::B128 => TyKind::Bits,
            Ty::U2 | Ty::U4 | Ty::U8 | Ty::U16 | Ty::U32 | Ty::U64 | Ty::U16x2 => TyKind::Unsigned,
            Ty::S2 | Ty::S4 | Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64 | Ty::S16x2 => TyKind::Signed,
            Ty::F16
            | Ty::F16x2
            | Ty::F32
            | Ty::F64
            | Ty::Bf16
            | Ty::Bf16x2
            | Ty::Tf32
            | Ty::E4m3
            | Ty::E5m2
            | Ty::E4m3x2
            | Ty::E5m2x2
            | Ty::F32x2 => TyKind::Float,
            Ty::Pred => TyKind::Pred,
            Ty::Texref | Ty::Samplerref | Ty::Surfref => TyKind::Opaque,
        }
    }

    /// Whether it is `.uX` or `.sX`.
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), TyKind::Unsigned | TyKind::Signed)
    }

    /// Whether it is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), TyKind::Float)
    }

    /// Whether it is `.sX`.
    pub const fn is_signed(self) -> bool {
        matches!(self.kind(), TyKind::Signed)
    }
}

/// A state space. PTX ISA §5.1; `Generic` means a memory instruction without a state space (§6.4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the variants are the manual's names")]
pub enum Space {
    Generic,
    Reg,
    Sreg,
    Const,
    Global,
    Local,
    Param,
    Shared,
    Tex,
}

impl Space {
    /// The name without the dot; `generic` for the generic space.
    pub const fn name(self) -> &'static str {
        match self {
            Space::Generic => "generic",
            Space::Reg => "reg",
            Space::Sreg => "sreg",
            Space::Const => "const",
            Space::Global => "global",
            Space::Local => "local",
            Space::Param => "param",
            Space::Shared => "shared",
            Space::Tex => "tex",
        }
    }
}

/// A scope of the memory model. PTX ISA §8.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the variants are the manual's names")]
pub enum Scope {
    Cta,
    Cluster,
    Gpu,
    Sys,
}

/// The ordering of a memory operation. PTX ISA §8.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the variants are the manual's names")]
pub enum Sem {
    Weak,
    Volatile,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    Sc,
}
