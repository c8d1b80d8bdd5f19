//! Video instructions (PTX ISA §9.7.15, §9.7.16).
//!
//! Packed forms with the default selectors are operations on vectors of bytes or halves; the others extract
//! their elements to 32 bits, in which every intermediate result is exact. Scalar forms compute in 64 bits. A
//! form that would not be exact in 64 bits has no lowering.

use crate::target::{Feature, Level};
use ptx::ir::{Dst, Src, VideoSrc};
use ptx::isa::{Cmp, Op, Secop, ShiftMode, Slot, Ty, Word};

use super::query::Query;
use super::{Lower, Lowering, Operand};
use crate::llvm::{IntPred, Value};

/// A part of a word: its lowest bit and its width.
type Part = (u32, u32);

const WORD: Part = (0, 32);

/// A source with its selector and sign.
struct Source<'a> {
    value: &'a Src,
    video: Option<&'a VideoSrc>,
}

fn source<'a>(q: &Query<'a>, index: usize) -> Option<Source<'a>> {
    let src = q.src(index)?;
    let source = match src {
        Src::Video(video) => Source { value: &video.value, video: Some(video) },
        Src::Reg(_) | Src::Imm(_) => Source { value: src, video: None },
        Src::Absent | Src::Not(_) | Src::Sreg(..) | Src::Addr(_) => return None,
    };
    let plain = match source.value {
        Src::Reg(reg) => reg.class != ptx::ir::RegClass::Pred,
        Src::Imm(_) => true,
        Src::Absent | Src::Not(_) | Src::Sreg(..) | Src::Addr(_) | Src::Video(_) => false,
    };
    plain.then_some(source)
}

impl Source<'_> {
    fn negated(&self) -> bool {
        self.video.is_some_and(|video| video.negated)
    }

    /// The part that a scalar form reads.
    fn part(&self) -> Option<Part> {
        let Some(video) = self.video else { return Some(WORD) };
        match (video.bytes, video.elements.as_slice()) {
            (_, []) => Some(WORD),
            (true, &[i @ 0..=3]) => Some((8 * u32::from(i), 8)),
            (false, &[i @ 0..=1]) => Some((16 * u32::from(i), 16)),
            _ => None,
        }
    }

    /// The elements that a packed form selects; the default if none are given.
    fn elements(&self, default: &[u8]) -> Option<Vec<u8>> {
        match self.video.map(|video| video.elements.as_slice()) {
            None | Some([]) => Some(default.to_vec()),
            Some(elements) => (elements.len() == default.len()).then(|| elements.to_vec()),
        }
    }
}

fn signed(q: &Query<'_>, slot: Slot) -> Option<bool> {
    match q.ty_in(slot)? {
        Ty::U32 => Some(false),
        Ty::S32 => Some(true),
        _ => None,
    }
}

/// A 32-bit destination, and the bytes of it that are written.
fn target(q: &Query<'_>) -> Option<(Dst, u8)> {
    let dst = q.inst.dsts.first().copied()?;
    let fits = |reg: ptx::ir::Reg| super::class_bits(reg.class) >= 32;
    match dst {
        Dst::Reg(reg) => fits(reg).then_some((dst, 0b1111)),
        Dst::Video { reg, bytes } => fits(reg).then_some((dst, bytes)),
        Dst::Sink => Some((dst, 0b1111)),
    }
}

/// The relation of `vset`, on exact values.
fn relation(q: &Query<'_>) -> Option<IntPred> {
    Some(match q.cmp()? {
        Cmp::Eq => IntPred::Eq,
        Cmp::Ne => IntPred::Ne,
        Cmp::Lt | Cmp::Lo => IntPred::Slt,
        Cmp::Le | Cmp::Ls => IntPred::Sle,
        Cmp::Gt | Cmp::Hi => IntPred::Sgt,
        Cmp::Ge | Cmp::Hs => IntPred::Sge,
        Cmp::Equ | Cmp::Neu | Cmp::Ltu | Cmp::Leu | Cmp::Gtu | Cmp::Geu | Cmp::Num | Cmp::Nan => return None,
    })
}

/// An operation on two exact values. The packed forms have no shifts.
#[derive(Clone, Copy, PartialEq)]
enum Exact {
    Add,
    Sub,
    Avrg,
    Absdiff,
    Min,
    Max,
    Set(IntPred),
    Shl(ShiftMode),
    Shr(ShiftMode),
}

fn exact(q: &Query<'_>) -> Option<Exact> {
    let mode = || {
        q.look(|slot, w| matches!(slot, Slot::Mode | Slot::Flag) && matches!(w, Word::Clamp | Word::Wrap));
        q.inst.mods.shift_mode()
    };
    let op = q.inst.op;
    let all = [
        (Exact::Add, [Op::Vadd, Op::Vadd2, Op::Vadd4]),
        (Exact::Sub, [Op::Vsub, Op::Vsub2, Op::Vsub4]),
        (Exact::Absdiff, [Op::Vabsdiff, Op::Vabsdiff2, Op::Vabsdiff4]),
        (Exact::Min, [Op::Vmin, Op::Vmin2, Op::Vmin4]),
        (Exact::Max, [Op::Vmax, Op::Vmax2, Op::Vmax4]),
        (Exact::Avrg, [Op::Vavrg2, Op::Vavrg2, Op::Vavrg4]),
    ];
    if let Some((exact, _)) = all.iter().find(|(_, ops)| ops.contains(&op)) {
        return Some(*exact);
    }
    if [Op::Vset, Op::Vset2, Op::Vset4].contains(&op) {
        return Some(Exact::Set(relation(q)?));
    }
    match op {
        Op::Vshl => Some(Exact::Shl(mode()?)),
        Op::Vshr => Some(Exact::Shr(mode()?)),
        _ => None,
    }
}

impl Exact {
    fn emit(self, l: &Lower<'_, '_>, x: Value, y: Value) -> Value {
        let b = l.b;
        let k = |bits| l.constant(x, bits);
        match self {
            Exact::Add => b.add(x, y),
            Exact::Sub => b.sub(x, y),
            Exact::Avrg => {
                let sum = b.add(x, y);
                let up = b.zext(b.icmp(IntPred::Sge, sum, k(0)), sum.ty());
                b.ashr(b.add(sum, up), k(1))
            }
            Exact::Absdiff => l.distance(x, y, true),
            Exact::Min => b.intrinsic("llvm.smin", &[x.ty()], &[x, y]),
            Exact::Max => b.intrinsic("llvm.smax", &[x.ty()], &[x, y]),
            Exact::Set(pred) => b.zext(b.icmp(pred, x, y), x.ty()),
            Exact::Shl(mode) => {
                let by = shift_count(l, y, mode);
                // Only a shift by 32 could exceed 64 bits. The result used instead is beyond every range as
                // well, with the same low word.
                let far = b.icmp(IntPred::Eq, by, k(32));
                let limited = b.intrinsic("llvm.smin", &[x.ty()], &[x, k(0x7fff_ffff)]);
                b.shl(b.select(far, limited, x), by)
            }
            Exact::Shr(mode) => b.ashr(x, shift_count(l, y, mode)),
        }
    }
}

/// A shift count from 0 to 32.
fn shift_count(l: &Lower<'_, '_>, by: Value, mode: ShiftMode) -> Value {
    match mode {
        ShiftMode::Clamp => l.b.intrinsic("llvm.umin", &[by.ty()], &[by, l.constant(by, 32)]),
        ShiftMode::Wrap => l.b.and(by, l.constant(by, 31)),
    }
}

/// The least and the greatest value of a type.
fn range(width: u32, signed: bool) -> (i64, i64) {
    if signed { (-1 << (width - 1), (1 << (width - 1)) - 1) } else { (0, (1 << width) - 1) }
}

fn clamped(l: &Lower<'_, '_>, value: Value, (least, most): (i64, i64)) -> Value {
    let b = l.b;
    let value = b.intrinsic("llvm.smin", &[value.ty()], &[value, l.constant(value, most as u64)]);
    b.intrinsic("llvm.smax", &[value.ty()], &[value, l.constant(value, least as u64)])
}

/// A lowering of three words to one.
fn words(
    q: &Query<'_>,
    dst: Dst,
    f: impl Fn(&Lower<'_, '_>, [Value; 3]) -> Value + Send + Sync + 'static,
) -> Option<Lowering> {
    if q.given(2) {
        source(q, 2)?;
    }
    let emit = move |l: &mut Lower<'_, '_>, srcs: &[Operand]| {
        let read = |i: usize| l.read(srcs.get(i).copied().unwrap_or(Operand::Absent), Ty::B32);
        let value = f(l, [read(0), read(1), read(2)]);
        vec![l.write(value, Ty::B32, dst)]
    };
    Some(Lowering::new(Box::new(emit)))
}

/// A scalar form other than `vmad`.
pub(super) fn scalar(q: &Query<'_>) -> Option<Lowering> {
    let (dst, bytes) = target(q)?;
    let (x, y) = (source(q, 0)?, source(q, 1)?);
    let op = exact(q)?;
    if x.negated() || y.negated() {
        return None;
    }
    let set = matches!(op, Exact::Set(_));
    let shifts = matches!(op, Exact::Shl(_) | Exact::Shr(_));
    let d_signed = if set { false } else { signed(q, Slot::Dtype)? };
    let x_signed = signed(q, Slot::Atype)?;
    // In the shifts, the type of b is a literal `.u32`.
    let y_signed = if q.inst.mods.ty_in(Slot::Btype).is_some() {
        signed(q, Slot::Btype)?
    } else {
        q.look(|slot, word| matches!(slot, Slot::Type | Slot::Flag) && word == Word::Ty(Ty::U32));
        false
    };
    let y_signed = y_signed && !shifts;
    q.look(|slot, _| slot == Slot::Secop);
    let (sat, secop) = (q.has(Word::Sat) && !set, q.inst.mods.secop());
    let (x_part, y_part) = (x.part()?, y.part()?);
    let place: Part = match bytes {
        0b1111 => WORD,
        0b0011 => (0, 16),
        0b1100 => (16, 16),
        0b0001 | 0b0010 | 0b0100 | 0b1000 => (8 * bytes.trailing_zeros(), 8),
        _ => return None,
    };
    words(q, dst, move |l, [x, y, c]| {
        let b = l.b;
        let value = op.emit(l, l.part(x, x_part, x_signed), l.part(y, y_part, y_signed));
        let value = if sat { clamped(l, value, range(place.1, d_signed)) } else { value };
        let word = |v| b.trunc(v, l.int(32));
        match secop {
            Some(Secop::Add) => b.add(word(value), c),
            Some(Secop::Min) => word(Exact::Min.emit(l, value, l.part(c, WORD, d_signed))),
            Some(Secop::Max) => word(Exact::Max.emit(l, value, l.part(c, WORD, d_signed))),
            None => l.merged(word(value), c, place),
        }
    })
}

pub(super) fn vmad(q: &Query<'_>) -> Option<Lowering> {
    let (dst, bytes) = target(q)?;
    let (x, y, c) = (source(q, 0)?, source(q, 1)?, source(q, 2)?);
    // dtype does not affect the result.
    signed(q, Slot::Dtype)?;
    let (x_signed, y_signed) = (signed(q, Slot::Atype)?, signed(q, Slot::Btype)?);
    q.look(|slot, _| slot == Slot::Scale);
    let (sat, po, scale) = (q.has(Word::Sat), q.has(Word::Po), q.inst.mods.vmad_shift());
    let negate_product = x.negated() != y.negated();
    let negate_c = c.negated();
    let (x_part, y_part) = (x.part()?, y.part()?);
    let is_signed = x_signed || y_signed || negate_product || negate_c;
    // Only products of unsigned words exceed 64 bits.
    let whole = x_part == WORD && y_part == WORD && !x_signed && !y_signed;
    if bytes != 0b1111 || whole && (sat || scale != 0) {
        return None;
    }
    words(q, dst, move |l, [x, y, c]| {
        let b = l.b;
        let product = b.mul(l.part(x, x_part, x_signed), l.part(y, y_part, y_signed));
        // At most one of the three is negated: it is complemented, and one is added.
        let one = po || negate_product || negate_c;
        let product = if !po && negate_product { b.not(product) } else { product };
        let c = if !po && !negate_product && negate_c { b.not(c) } else { c };
        let sum = b.add(product, l.part(c, WORD, is_signed));
        let sum = if one { b.add(sum, l.constant(sum, 1)) } else { sum };
        let scaled = b.ashr(sum, l.constant(sum, u64::from(scale)));
        let result = if sat { clamped(l, scaled, range(32, is_signed)) } else { scaled };
        b.trunc(result, l.int(32))
    })
}

/// A packed form.
#[derive(Clone)]
struct Packed {
    op: Exact,
    width: u32,
    d_signed: bool,
    x_signed: bool,
    y_signed: bool,
    sat: bool,
    add: bool,
    /// Bit `i`: element `i` is written or summed.
    mask: u8,
    x_elements: Vec<u8>,
    y_elements: Vec<u8>,
}

pub(super) fn packed(q: &Query<'_>, count: u8) -> Option<Lowering> {
    let (dst, bytes) = target(q)?;
    let (x, y) = (source(q, 0)?, source(q, 1)?);
    if x.negated() || y.negated() {
        return None;
    }
    let op = exact(q)?;
    q.look(|slot, word| matches!(slot, Slot::Secop | Slot::Flag) && word == Word::Add);
    let add = match q.inst.mods.secop() {
        None => false,
        Some(Secop::Add) => true,
        Some(Secop::Min | Secop::Max) => return None,
    };
    let low: Vec<u8> = (0..count).collect();
    let high: Vec<u8> = (count..2 * count).collect();
    let mask = match (count, bytes) {
        (4, mask) => mask,
        (_, 0b0011) => 0b01,
        (_, 0b1100) => 0b10,
        (_, 0b1111) => 0b11,
        _ => return None,
    };
    let set = matches!(op, Exact::Set(_));
    let form = Packed {
        op,
        width: 32 / u32::from(count),
        d_signed: if set { false } else { signed(q, Slot::Dtype)? },
        x_signed: signed(q, Slot::Atype)?,
        y_signed: signed(q, Slot::Btype)?,
        sat: q.has(Word::Sat),
        add,
        mask,
        x_elements: x.elements(&low)?,
        y_elements: y.elements(&high)?,
    };
    words(q, dst, move |l, [x, y, c]| form.at_once(l, x, y, c).unwrap_or_else(|| form.one_by_one(l, x, y, c)))
}

impl Packed {
    fn count(&self) -> u32 {
        32 / self.width
    }

    /// All elements by one operation on a vector of bytes or halves, if there is one.
    fn at_once(&self, l: &Lower<'_, '_>, x: Value, y: Value, c: Value) -> Option<Value> {
        let count = self.count() as u8;
        let plain = self.mask == (1 << count) - 1
            && self.x_elements.iter().copied().eq(0..count)
            && self.y_elements.iter().copied().eq(count..2 * count)
            && self.x_signed == self.y_signed;
        let (sat, is_signed) = (self.sat, self.x_signed);
        if !plain || sat && self.d_signed != is_signed {
            return None;
        }
        let b = l.b;
        let ty = b.vec(b.int(self.width), l.lanes * self.count());
        let (x, y) = (b.bitcast(x, ty), b.bitcast(y, ty));
        let call = |name: &str| b.intrinsic(name, &[ty], &[x, y]);
        let result = match (self.op, sat, is_signed) {
            (Exact::Add, false, _) if !self.add => b.add(x, y),
            (Exact::Sub, false, _) if !self.add => b.sub(x, y),
            (Exact::Add, true, false) => call("llvm.uadd.sat"),
            (Exact::Add, true, true) => call("llvm.sadd.sat"),
            (Exact::Sub, true, false) => call("llvm.usub.sat"),
            (Exact::Sub, true, true) => call("llvm.ssub.sat"),
            (Exact::Min, _, false) => call("llvm.umin"),
            (Exact::Min, _, true) if !self.add => call("llvm.smin"),
            (Exact::Max, _, false) => call("llvm.umax"),
            (Exact::Max, _, true) if !self.add => call("llvm.smax"),
            // The differences are unsigned, also for signed elements.
            (Exact::Absdiff, false, _) => l.distance(x, y, is_signed),
            (Exact::Avrg, _, false) => {
                let wide = b.vec(b.int(2 * self.width), l.lanes * self.count());
                let sum = b.add(b.zext(x, wide), b.zext(y, wide));
                let one = b.const_int(wide, 1);
                b.trunc(b.lshr(b.add(sum, one), one), ty)
            }
            _ => return None,
        };
        let word = b.bitcast(result, l.int(32));
        if !self.add {
            return Some(word);
        }
        Some(match self.width {
            8 => l.sum_of_bytes(word, c),
            _ => {
                let low = b.and(word, l.constant(word, 0xffff));
                b.add(b.add(c, low), b.lshr(word, l.constant(word, 16)))
            }
        })
    }

    /// Element by element, in 32 bits.
    fn one_by_one(&self, l: &Lower<'_, '_>, x: Value, y: Value, c: Value) -> Value {
        let b = l.b;
        let element = |select: u8, signed: bool| {
            let index = u32::from(select) & (2 * self.count() - 1);
            let register = if index < self.count() { x } else { y };
            l.element(register, index & (self.count() - 1), self.width, signed)
        };
        let mut result = c;
        for i in (0..self.count()).filter(|i| self.mask >> i & 1 != 0) {
            let (p, q) = (self.x_elements[i as usize], self.y_elements[i as usize]);
            let value = self.op.emit(l, element(p, self.x_signed), element(q, self.y_signed));
            let value = if self.sat { clamped(l, value, range(self.width, self.d_signed)) } else { value };
            result = if self.add {
                b.add(result, value)
            } else {
                l.merged(value, result, (self.width * i, self.width))
            };
        }
        result
    }
}

impl Lower<'_, '_> {
    /// A part of words, extended to 64 bits.
    fn part(&self, word: Value, (low, width): Part, signed: bool) -> Value {
        let wide = self.int(64);
        let part = if width == 32 { word } else { self.element(word, low / width, width, signed) };
        if signed { self.b.sext(part, wide) } else { self.b.zext(part, wide) }
    }

    /// Inserts the low bits of a value into a part of words; the other bits are those of `c`.
    fn merged(&self, value: Value, c: Value, (low, width): Part) -> Value {
        if width == 32 {
            return value;
        }
        let b = self.b;
        let place = (u32::MAX >> (32 - width)) << low;
        let here =
            b.and(b.shl(value, self.constant(value, u64::from(low))), self.constant(value, u64::from(place)));
        b.or(here, b.and(c, self.constant(c, u64::from(!place))))
    }

    /// `c` plus the four unsigned bytes of words.
    fn sum_of_bytes(&self, word: Value, c: Value) -> Value {
        let b = self.b;
        let ones = self.constant(word, 0x0101_0101);
        if self.env.target.has(Feature::Avx512Vnni) && matches!(self.lanes, 4 | 8 | 16) {
            return self.dot4(word, ones, c, false, true);
        }
        let (bytes, halves) = match (self.env.target.level(), self.lanes) {
            (Level::Avx512 | Level::Avx2, 8) => ("llvm.x86.avx2.pmadd.ub.sw", "llvm.x86.avx2.pmadd.wd"),
            (Level::Avx512, 16) => ("llvm.x86.avx512.pmaddubs.w.512", "llvm.x86.avx512.pmaddw.d.512"),
            _ => {
                return (0..4).fold(c, |sum, i| b.add(sum, self.element(word, i, 8, false)));
            }
        };
        let byte = b.vec(b.int(8), 4 * self.lanes);
        let half = b.vec(b.int(16), 2 * self.lanes);
        // Sums of two bytes, then of two sums.
        let pairs = b.intrinsic(bytes, &[], &[b.bitcast(word, byte), b.bitcast(ones, byte)]);
        let sums = b.intrinsic(halves, &[], &[pairs, b.const_int(half, 1)]);
        b.add(c, sums)
    }
}
