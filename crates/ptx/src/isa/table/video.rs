//! Video instructions: scalar and SIMD. PTX ISA §9.7.15, §9.7.16.
//!
//! Invariant: see [`super`]. The manual has one syntax line for a family of mnemonics; the macros list the
//! rows of one member and contain no logic. Secondary operation and merge exclude each other by syntax (V7),
//! as do `.sat` and `.add` of the SIMD forms (V11).

use crate::isa::op::Op;
use crate::isa::row::Class::Lane;
use crate::isa::row::{Row, Rule, row, s};

const US: &str = "u32 s32";
const CMP: &str = "eq ne lt le gt ge";
const OP2: &str = "add min max";
const MODE: &str = "clamp wrap";
const PLAIN: &str = "d:=dtype a:atype.sub b:btype.sub";
const SECOND: &str = "d:=dtype a:atype.sub b:btype.sub c:dtype";
const MERGE: &str = "d:=dtype.sub a:atype.sub b:btype.sub c:dtype";
const SET_PLAIN: &str = "d:=u32 a:atype.sub b:btype.sub";
const SET_SECOND: &str = "d:=u32 a:atype.sub b:btype.sub c:u32";
const SET_MERGE: &str = "d:=u32.sub a:atype.sub b:btype.sub c:u32";
const TWO: &str = "d:=dtype.mask2 a:atype.sel2 b:btype.sel2 c:dtype";
const FOUR: &str = "d:=dtype.mask4 a:atype.sel4 b:btype.sel4 c:dtype";
const SET_TWO: &str = "d:=u32.mask2 a:atype.sel2 b:btype.sel2 c:u32";
const SET_FOUR: &str = "d:=u32.mask4 a:atype.sel4 b:btype.sel4 c:u32";

/// The three rows of a scalar instruction (§9.7.15.1).
macro_rules! scalar {
    ($op:ident $name:literal $brief:literal) => {
        &[
            row(
                Op::$op,
                concat!($name, ".dtype.atype.btype{.sat} d, a{.asel}, b{.bsel}"),
                &[s("dtype", US), s("atype", US), s("btype", US)],
                PLAIN,
                "2.0 sm_20",
                Lane,
                "9.7.15.1",
                &[concat!("vid.", $name), "vid.sel", "vid.imm"],
                $brief,
            ),
            row(
                Op::$op,
                concat!($name, ".dtype.atype.btype{.sat}.op2 d, a{.asel}, b{.bsel}, c"),
                &[s("dtype", US), s("atype", US), s("btype", US), s("op2", OP2)],
                SECOND,
                "2.0 sm_20",
                Lane,
                "9.7.15.1",
                &[
                    concat!("vid.", $name, ".add"),
                    concat!("vid.", $name, ".min"),
                    concat!("vid.", $name, ".max"),
                ],
                concat!($brief, ", combined with c"),
            ),
            row(
                Op::$op,
                concat!($name, ".dtype.atype.btype{.sat} d.dsel, a{.asel}, b{.bsel}, c"),
                &[s("dtype", US), s("atype", US), s("btype", US)],
                MERGE,
                "2.0 sm_20",
                Lane,
                "9.7.15.1",
                &[concat!("vid.", $name, ".merge")],
                concat!($brief, ", merged into c"),
            ),
        ]
    };
}

/// The three rows of a scalar shift (§9.7.15.2).
macro_rules! shift {
    ($op:ident $name:literal $brief:literal) => {
        &[
            row(
                Op::$op,
                concat!($name, ".dtype.atype.btype{.sat}.mode d, a{.asel}, b{.bsel}"),
                &[s("dtype", US), s("atype", US), s("btype", "u32"), s("mode", MODE)],
                PLAIN,
                "2.0 sm_20",
                Lane,
                "9.7.15.2",
                &[concat!("vid.", $name)],
                $brief,
            ),
            row(
                Op::$op,
                concat!($name, ".dtype.atype.btype{.sat}.mode.op2 d, a{.asel}, b{.bsel}, c"),
                &[s("dtype", US), s("atype", US), s("btype", "u32"), s("mode", MODE), s("op2", OP2)],
                SECOND,
                "2.0 sm_20",
                Lane,
                "9.7.15.2",
                &[
                    concat!("vid.", $name, ".add"),
                    concat!("vid.", $name, ".min"),
                    concat!("vid.", $name, ".max"),
                ],
                concat!($brief, ", combined with c"),
            ),
            row(
                Op::$op,
                concat!($name, ".dtype.atype.btype{.sat}.mode d.dsel, a{.asel}, b{.bsel}, c"),
                &[s("dtype", US), s("atype", US), s("btype", "u32"), s("mode", MODE)],
                MERGE,
                "2.0 sm_20",
                Lane,
                "9.7.15.2",
                &[concat!("vid.", $name, ".merge")],
                concat!($brief, ", merged into c"),
            ),
        ]
    };
}

/// The two rows of a SIMD instruction (§9.7.16).
macro_rules! simd {
    ($op:ident $name:literal $kinds:ident $section:literal $brief:literal) => {
        &[
            row(
                Op::$op,
                concat!($name, ".dtype.atype.btype{.sat} d{.mask}, a{.asel}, b{.bsel}, c"),
                &[s("dtype", US), s("atype", US), s("btype", US)],
                $kinds,
                "3.0 sm_30",
                Lane,
                $section,
                &[concat!("vid.", $name), concat!("vid.", $name, ".sat")],
                concat!($brief, " of each lane, merged into c"),
            )
            .rules(&[Rule::SimdConstant]),
            row(
                Op::$op,
                concat!($name, ".dtype.atype.btype.op2 d{.mask}, a{.asel}, b{.bsel}, c"),
                &[s("dtype", US), s("atype", US), s("btype", US), s("op2", "add")],
                $kinds,
                "3.0 sm_30",
                Lane,
                $section,
                &[concat!("vid.", $name, ".add")],
                concat!($brief, " of each lane, added to c"),
            )
            .rules(&[Rule::SimdConstant]),
        ]
    };
}

/// The two rows of a SIMD comparison (§9.7.16).
macro_rules! simd_set {
    ($op:ident $name:literal $kinds:ident $section:literal $width:literal) => {
        &[
            row(
                Op::$op,
                concat!($name, ".atype.btype.cmp d{.mask}, a{.asel}, b{.bsel}, c"),
                &[s("atype", US), s("btype", US), s("cmp", CMP)],
                $kinds,
                "3.0 sm_30",
                Lane,
                $section,
                &[
                    concat!("vid.", $name),
                    concat!("vid.simd", $width, ".mask"),
                    concat!("vid.simd", $width, ".sel"),
                ],
                "1 or 0 for each lane, merged into c",
            )
            .rules(&[Rule::SimdConstant]),
            row(
                Op::$op,
                concat!($name, ".atype.btype.cmp.op2 d{.mask}, a{.asel}, b{.bsel}, c"),
                &[s("atype", US), s("btype", US), s("cmp", CMP), s("op2", "add")],
                $kinds,
                "3.0 sm_30",
                Lane,
                $section,
                &[concat!("vid.", $name, ".add")],
                "the number of lanes that compare true, added to c",
            )
            .rules(&[Rule::SimdConstant]),
        ]
    };
}

const FAMILIES: &[&[Row]] = &[
    scalar!(Vadd "vadd" "the sum"),
    scalar!(Vsub "vsub" "the difference"),
    scalar!(Vabsdiff "vabsdiff" "the absolute difference"),
    scalar!(Vmin "vmin" "the smaller"),
    scalar!(Vmax "vmax" "the larger"),
    shift!(Vshl "vshl" "a shifted left"),
    shift!(Vshr "vshr" "a shifted right"),
    VMAD_VSET,
    simd!(Vadd2 "vadd2" TWO "9.7.16.1" "the sum"),
    simd!(Vsub2 "vsub2" TWO "9.7.16.1" "the difference"),
    simd!(Vavrg2 "vavrg2" TWO "9.7.16.1" "the average"),
    simd!(Vabsdiff2 "vabsdiff2" TWO "9.7.16.1" "the absolute difference"),
    simd!(Vmin2 "vmin2" TWO "9.7.16.1" "the smaller"),
    simd!(Vmax2 "vmax2" TWO "9.7.16.1" "the larger"),
    simd_set!(Vset2 "vset2" SET_TWO "9.7.16.2" "2"),
    simd!(Vadd4 "vadd4" FOUR "9.7.16.3" "the sum"),
    simd!(Vsub4 "vsub4" FOUR "9.7.16.3" "the difference"),
    simd!(Vavrg4 "vavrg4" FOUR "9.7.16.3" "the average"),
    simd!(Vabsdiff4 "vabsdiff4" FOUR "9.7.16.3" "the absolute difference"),
    simd!(Vmin4 "vmin4" FOUR "9.7.16.3" "the smaller"),
    simd!(Vmax4 "vmax4" FOUR "9.7.16.3" "the larger"),
    simd_set!(Vset4 "vset4" SET_FOUR "9.7.16.4" "4"),
];

#[rustfmt::skip]
const VMAD_VSET: &[Row] = &[
    row(Op::Vmad, "vmad.dtype.atype.btype{.sat}{.scale} d, {-}a{.asel}, {-}b{.bsel}, {-}c", &[s("dtype", US), s("atype", US), s("btype", US), s("scale", "shr7 shr15")], SECOND, "2.0 sm_20", Lane, "9.7.15.3",
        &["vid.vmad", "vid.vmad.shr7", "vid.vmad.shr15", "vid.vmad.negab", "vid.vmad.negab2", "vid.vmad.negc"], "a * b + c, scaled").rules(&[Rule::VmadNegation]),
    row(Op::Vmad, "vmad.dtype.atype.btype.po{.sat}{.scale} d, a{.asel}, b{.bsel}, c",       &[s("dtype", US), s("atype", US), s("btype", US), s("scale", "shr7 shr15")], SECOND, "2.0 sm_20", Lane, "9.7.15.3",
        &["vid.vmad.po"], "a * b + c + 1, scaled"),
    row(Op::Vset, "vset.atype.btype.cmp d, a{.asel}, b{.bsel}",          &[s("atype", US), s("btype", US), s("cmp", CMP)],                  SET_PLAIN,  "2.0 sm_20", Lane, "9.7.15.4",
        &["vid.vset"], "1 if the comparison holds, else 0"),
    row(Op::Vset, "vset.atype.btype.cmp.op2 d, a{.asel}, b{.bsel}, c",   &[s("atype", US), s("btype", US), s("cmp", CMP), s("op2", OP2)],   SET_SECOND, "2.0 sm_20", Lane, "9.7.15.4",
        &["vid.vset.add", "vid.vset.min", "vid.vset.max"], "1 if the comparison holds, else 0; combined with c"),
    row(Op::Vset, "vset.atype.btype.cmp d.dsel, a{.asel}, b{.bsel}, c",  &[s("atype", US), s("btype", US), s("cmp", CMP)],                  SET_MERGE,  "2.0 sm_20", Lane, "9.7.15.4",
        &["vid.vset.merge"], "1 if the comparison holds, else 0; merged into c"),
];

/// The rows, family by family.
pub(super) const ROWS: &[&[Row]] = FAMILIES;
