//! Textures. PTX ISA §9.7.9.
//!
//! Invariant: see [`super`]. [`Rule::TexGeometry`] has the restrictions of geometries.

use crate::isa::op::Op;
use crate::isa::row::Class::{Lane, Memory};
use crate::isa::row::{Row, Rule, row, s};

const GEOM: &str = "1d 2d 3d a1d@2.3 a2d@2.3 cube@3.0 acube@3.0,sm_20 2dms@3.2,sm_30 a2dms@3.2,sm_30";
const MIP_GEOM: &str = "1d 2d 3d a1d a2d cube acube";
const GRAD_GEOM: &str = "1d 2d 3d a1d a2d cube@4.3,sm_20 acube@4.3,sm_20";
const DTYPE: &str = "u32 s32 f16@4.2,sm_53 f32";
const CTYPE: &str = "s32 f32";
const F16X2: &str = "f16x2@4.2,sm_53";
const TEX: &[Rule] = &[Rule::TexGeometry, Rule::TexMode];
const LOOKUP: &str = "d:=dtype*vec a:texref b:samplerref c:coords e:offset@4.3,sm_30 f:f32@4.3,sm_30";
const LEVEL: &str = "d:=dtype*vec a:texref b:samplerref c:coords lod:lod e:offset@4.3,sm_30 f:f32@4.3,sm_30";
const GRAD: &str =
    "d:=dtype*vec a:texref b:samplerref c:coords dPdx:grad dPdy:grad e:offset@4.3,sm_30 f:f32@4.3,sm_30";
const ALL: &[&str] = &[
    "tex.1d",
    "tex.2d",
    "tex.3d",
    "tex.a1d",
    "tex.a2d",
    "tex.cube",
    "tex.acube",
    "tex.2dms",
    "tex.a2dms",
    "tex.dtype_f16",
    "tex.base",
    "tex.offset",
    "tex.depth_compare",
    "tex.sampler",
    "tex.indirect",
];

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row(Op::Tex,  "tex{.mip}.geom.v4.dtype.ctype d, [a{, b}, c]{, e}{, f}",              &[s("mip", "base@3.1,sm_20"), s("geom", GEOM), s("dtype", DTYPE), s("ctype", CTYPE)],
                                                                                         LOOKUP,    "1.0",       Memory, "9.7.9.3", ALL,
        "looks a texture up at coordinates").approximate().rules(TEX),
    row(Op::Tex,  "tex{.mip}.geom.v2.dtype.ctype d, [a{, b}, c]{, e}{, f}",              &[s("mip", "base@3.1,sm_20"), s("geom", GEOM), s("dtype", F16X2), s("ctype", CTYPE)],
                                                                                         LOOKUP,    "1.0",       Memory, "9.7.9.3", &["tex.v2_f16x2"],
        "looks a texture up, result in two pairs of half-precision numbers").approximate().rules(TEX),
    row(Op::Tex,  "tex.level.geom.v4.dtype.ctype d, [a{, b}, c], lod{, e}{, f}",         &[s("geom", MIP_GEOM), s("dtype", DTYPE), s("ctype", CTYPE)],
                                                                                         LEVEL,     "3.1 sm_20", Memory, "9.7.9.3", &["tex.level", "tex.lod_math"],
        "looks a texture up at a level of detail").approximate().rules(TEX),
    row(Op::Tex,  "tex.level.geom.v2.dtype.ctype d, [a{, b}, c], lod{, e}{, f}",         &[s("geom", MIP_GEOM), s("dtype", F16X2), s("ctype", CTYPE)],
                                                                                         LEVEL,     "3.1 sm_20", Memory, "9.7.9.3", &["tex.level"],
        "looks a texture up at a level of detail, result in two pairs").approximate().rules(TEX),
    row(Op::Tex,  "tex.grad.geom.v4.dtype.ctype d, [a{, b}, c], dPdx, dPdy{, e}{, f}",   &[s("geom", GRAD_GEOM), s("dtype", DTYPE), s("ctype", CTYPE)],
                                                                                         GRAD,      "3.1 sm_20", Memory, "9.7.9.3", &["tex.grad"],
        "looks a texture up at the level of detail that gradients ask for").approximate().rules(TEX),
    row(Op::Tex,  "tex.grad.geom.v2.dtype.ctype d, [a{, b}, c], dPdx, dPdy{, e}{, f}",   &[s("geom", GRAD_GEOM), s("dtype", F16X2), s("ctype", CTYPE)],
                                                                                         GRAD,      "3.1 sm_20", Memory, "9.7.9.3", &["tex.grad"],
        "looks a texture up at the level of detail that gradients ask for, result in two pairs").approximate().rules(TEX),
    row(Op::Tex,  "tex.geom.v4.dtype.ctype d, a{, b}, c",                                &[s("geom", GEOM), s("dtype", DTYPE), s("ctype", CTYPE)],
                                                                                         "d:=dtype*vec a:texref b:samplerref c:coords", "1.0", Memory, "9.7.9.3", &["tex.compat"],
        "looks a texture up at coordinates, as written in old programs").approximate().rules(&[Rule::TexGeometry, Rule::TexMode, Rule::BracketsGiven]),
    row(Op::Tld4, "tld4.comp.geom.v4.dtype.ctype d, [a{, b}, c]{, e}{, f}",              &[s("comp", "r g b a"), s("geom", "2d a2d@4.3,sm_30 cube@4.3,sm_30 acube@4.3,sm_30"), s("dtype", "u32 s32 f32"), s("ctype", "f32")],
                                                                                         LOOKUP,    "2.2 sm_20", Memory, "9.7.9.4", &["tld4.2d", "tld4.a2d", "tld4.cube", "tld4.acube", "tld4.offset_compare"],
        "one component of the four texels around the coordinates").rules(TEX),
    row(Op::Txq,  "txq.tquery.b32 d, [a]",                                               &[s("tquery", "width height depth channel_data_type@2.1 channel_order@2.1 normalized_coords array_size@4.1 num_mipmap_levels@4.1,sm_20 num_samples@4.1,sm_30")],
                                                                                         "a:texref", "1.5",      Lane,   "9.7.9.5", &["txq.width", "txq.channel", "txq.normalized", "txq.array_size", "txq.mipmap_levels", "txq.num_samples"],
        "a property of a texture"),
    row(Op::Txq,  "txq.level.tlquery.b32 d, [a], lod",                                   &[s("tlquery", "width height depth")],
                                                                                         "a:texref lod:u32", "4.3 sm_30", Lane, "9.7.9.5", &["txq.level"],
        "the size of a level of a texture"),
    row(Op::Txq,  "txq.squery.b32 d, [a]",                                               &[s("squery", "force_unnormalized_coords@2.2 filter_mode addr_mode_0 addr_mode_1 addr_mode_2")],
                                                                                         "a:samplerref", "1.5",  Lane,   "9.7.9.5", &["txq.sampler", "txq.force_unnorm"],
        "a property of a sampler").rules(&[Rule::TexMode]),
    row(Op::Istypep, "istypep.type p, a",                                                &[s("type", "texref samplerref surfref")],
                                                                                         "p:=pred a:reg(u64)", "4.0 sm_30", Lane, "9.7.9.6", &["istypep"],
        "whether an address points to an opaque variable of that type"),
];
