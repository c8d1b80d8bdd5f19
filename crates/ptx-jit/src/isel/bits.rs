//! Bit counts, fields, logic, shifts and byte permutation (PTX ISA §9.7.1.14 to §9.7.1.20, §9.7.7, §9.7.8.6).

use ptx::ir::Src;
use ptx::isa::{PrmtMode, ShiftMode, Slot, Ty, Word};

use super::query::Query;
use super::{Lower, Lowering, is_signed};
use crate::llvm::{Builder, IntPred, Value};

fn is_word(ty: Ty) -> bool {
    matches!(ty, Ty::B32 | Ty::U32 | Ty::S32 | Ty::B64 | Ty::U64 | Ty::S64)
}

pub(super) fn popc(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty().filter(|ty| is_word(*ty))?;
    q.map(&[ty], Ty::U32, |l, v| {
        let count = l.b.intrinsic("llvm.ctpop", &[v[0].ty()], v);
        l.resized(count, l.int(32))
    })
}

pub(super) fn clz(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty().filter(|ty| is_word(*ty))?;
    q.map(&[ty], Ty::U32, |l, v| l.leading_zeros(v[0]))
}

pub(super) fn bfind(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty().filter(|ty| is_word(*ty))?;
    let shiftamt = q.has(Word::Shiftamt);
    q.map(&[ty], Ty::U32, move |l, v| {
        let b = l.b;
        let value = if is_signed(ty) {
            let sign = b.ashr(v[0], l.constant(v[0], u64::from(ty.bits() - 1)));
            b.xor(v[0], sign)
        } else {
            v[0]
        };
        let zeros = l.leading_zeros(value);
        if shiftamt {
            let none = b.icmp(IntPred::Eq, value, b.zero(value.ty()));
            b.select(none, b.ones(zeros.ty()), zeros)
        } else {
            // All bits of zero are leading zeros, which makes the result -1.
            b.sub(l.constant(zeros, u64::from(ty.bits() - 1)), zeros)
        }
    })
}

pub(super) fn brev(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty().filter(|ty| is_word(*ty))?;
    q.map(&[ty], ty, |l, v| l.b.intrinsic("llvm.bitreverse", &[v[0].ty()], v))
}

pub(super) fn bfe(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty().filter(|ty| is_word(*ty))?;
    let width = u64::from(ty.bits());
    q.map(&[ty, Ty::U32, Ty::U32], ty, move |l, v| {
        let b = l.b;
        let (pos, len) = (l.place(v[1], v[0]), l.place(v[2], v[0]));
        let short = b.icmp(IntPred::Ult, len, l.constant(len, width));
        if is_signed(ty) {
            let field = l.ashr_clamped(v[0], pos);
            // The field is shifted up by width - len and down again: for len = 0 both shifts are too large,
            // and the field is empty.
            let empty = b.icmp(IntPred::Eq, len, b.zero(len.ty()));
            let by = b.and(b.neg(len), l.constant(len, width - 1));
            let extended = b.ashr(b.shl(field, by), by);
            let inside = b.select(empty, b.zero(field.ty()), extended);
            b.select(short, inside, field)
        } else {
            let field = l.lshr_clamped(v[0], pos);
            b.and(field, l.low_ones(len))
        }
    })
}

pub(super) fn bfi(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty().filter(|ty| is_word(*ty))?;
    q.map(&[ty, ty, Ty::U32, Ty::U32], ty, move |l, v| {
        let b = l.b;
        let (pos, len) = (l.place(v[2], v[0]), l.place(v[3], v[0]));
        let mask = l.shl_clamped(l.low_ones(len), pos);
        let field = l.shl_clamped(v[0], pos);
        b.or(b.and(field, mask), b.and(v[1], b.not(mask)))
    })
}

/// A bitwise operation, also on predicates.
pub(super) fn logic(q: &Query<'_>, f: fn(&Builder<'_>, Value, Value) -> Value) -> Option<Lowering> {
    let ty = q.ty().filter(|ty| is_bits(*ty))?;
    q.map(&[ty, ty], ty, move |l, v| f(l.b, v[0], v[1]))
}

fn is_bits(ty: Ty) -> bool {
    matches!(ty, Ty::Pred | Ty::B16 | Ty::B32 | Ty::B64)
}

pub(super) fn not(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty().filter(|ty| is_bits(*ty))?;
    q.map(&[ty], ty, |l, v| l.b.not(v[0]))
}

pub(super) fn cnot(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty().filter(|ty| is_bits(*ty) && *ty != Ty::Pred)?;
    q.map(&[ty], ty, |l, v| {
        let zero = l.b.icmp(IntPred::Eq, v[0], l.b.zero(v[0].ty()));
        l.b.zext(zero, v[0].ty())
    })
}

pub(super) fn lop3(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty().filter(|ty| *ty == Ty::B32)?;
    let Src::Imm(table) = q.src(3)? else { return None };
    let table = *table as u8;
    q.map(&[ty, ty, ty], ty, move |l, v| l.by_table(u32::from(table), 8, v))
}

pub(super) fn shf(q: &Query<'_>) -> Option<Lowering> {
    q.look(|slot, word| slot == Slot::Direction && matches!(word, Word::L | Word::R));
    let left = match q.inst.mods.get(Slot::Direction)? {
        Word::L => true,
        Word::R => false,
        _ => return None,
    };
    q.look(|slot, w| matches!(slot, Slot::Mode | Slot::Flag) && matches!(w, Word::Clamp | Word::Wrap));
    let clamp = q.inst.mods.shift_mode()? == ShiftMode::Clamp;
    let ty = q.ty().filter(|ty| *ty == Ty::B32)?;
    q.map(&[ty, ty, Ty::U32], ty, move |l, v| {
        let (b, low, high, by) = (l.b, v[0], v[1], v[2]);
        let name = if left { "llvm.fshl" } else { "llvm.fshr" };
        let shifted = b.intrinsic(name, &[low.ty()], &[high, low, by]);
        if !clamp {
            return shifted;
        }
        let inside = b.icmp(IntPred::Ult, by, l.constant(by, 32));
        b.select(inside, shifted, if left { low } else { high })
    })
}

pub(super) fn shl(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty().filter(|ty| is_bits(*ty) && *ty != Ty::Pred)?;
    q.map(&[ty, Ty::U32], ty, |l, v| l.shift(v[0], v[1], Lower::shl_clamped))
}

pub(super) fn shr(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty().filter(|ty| matches!(ty.bits(), 16 | 32 | 64) && !ty.is_float())?;
    q.map(&[ty, Ty::U32], ty, move |l, v| {
        l.shift(v[0], v[1], if is_signed(ty) { Lower::ashr_clamped } else { Lower::lshr_clamped })
    })
}

pub(super) fn prmt(q: &Query<'_>) -> Option<Lowering> {
    let words = [Word::F4e, Word::B4e, Word::Rc8, Word::Ecl, Word::Ecr, Word::Rc16];
    q.look(|slot, w| matches!(slot, Slot::Mode | Slot::Flag) && words.contains(&w));
    let mode = q.inst.mods.prmt_mode();
    let ty = q.ty().filter(|ty| *ty == Ty::B32)?;
    if mode == PrmtMode::Index
        && let Src::Imm(selector) = q.src(2)?
    {
        let selector = *selector as u32;
        return q.map(&[ty, ty], ty, move |l, v| l.permuted_bytes(v[0], v[1], selector));
    }
    q.map(&[ty, ty, ty], ty, move |l, v| {
        let wide = l.int(64);
        let b = l.b;
        let pair = b.or(b.zext(v[0], wide), b.shl(b.zext(v[1], wide), b.const_int(wide, 32)));
        let selector = b.zext(v[2], wide);
        let bytes = l.byte_indices(mode, selector).map(|(index, sign)| {
            let byte = l.pair_byte(pair, index);
            match sign {
                None => byte,
                Some(sign) => {
                    let replicated = b.ashr(b.shl(byte, b.const_int(wide, 56)), b.const_int(wide, 63));
                    let replicated = b.and(replicated, b.const_int(wide, 0xff));
                    b.select(sign, replicated, byte)
                }
            }
        });
        let word =
            (1..4).fold(bytes[0], |word, i| b.or(word, b.shl(bytes[i], b.const_int(wide, 8 * i as u64))));
        b.trunc(word, l.int(32))
    })
}

impl Lower<'_, '_> {
    /// The number of leading zero bits, as a 32-bit value.
    fn leading_zeros(&self, value: Value) -> Value {
        let zero_is_defined = self.b.const_int(self.b.int(1), 0);
        let zeros = self.b.intrinsic("llvm.ctlz", &[value.ty()], &[value, zero_is_defined]);
        self.resized(zeros, self.int(32))
    }

    /// A position or length, resized to the value that it is for: its low byte for words, all of it for
    /// double words.
    fn place(&self, position: Value, like: Value) -> Value {
        if like.ty().element_bits() == 64 {
            return self.resized(position, like.ty());
        }
        let byte = self.b.and(position, self.constant(position, 0xff));
        self.resized(byte, like.ty())
    }

    /// `len` one bits from bit 0 on; all ones if `len` is at least the width.
    fn low_ones(&self, len: Value) -> Value {
        let b = self.b;
        let ones = b.ones(len.ty());
        b.not(self.shl_clamped(ones, len))
    }

    /// A shift of a value by a 32-bit amount.
    fn shift(&self, value: Value, by: Value, f: impl Fn(&Self, Value, Value) -> Value) -> Value {
        let bits = value.ty().element_bits();
        if bits >= 32 {
            return f(self, value, self.resized(by, value.ty()));
        }
        // An amount that does not fit into 16 bits exceeds the width, as does the greatest one that fits.
        let most = self.constant(by, 0xffff);
        let by = self.b.intrinsic("llvm.umin", &[by.ty()], &[by, most]);
        f(self, value, self.b.trunc(by, value.ty()))
    }

    /// Shift left; zero if the amount is at least the width. Both have one type.
    pub(super) fn shl_clamped(&self, value: Value, by: Value) -> Value {
        self.clamped(by, self.b.shl(value, by))
    }

    /// Unsigned shift right; zero if the amount is at least the width. Both have one type.
    pub(super) fn lshr_clamped(&self, value: Value, by: Value) -> Value {
        self.clamped(by, self.b.lshr(value, by))
    }

    /// Signed shift right; the sign if the amount is at least the width. Both have one type.
    pub(super) fn ashr_clamped(&self, value: Value, by: Value) -> Value {
        let most = self.constant(by, u64::from(value.ty().element_bits() - 1));
        let by = self.b.intrinsic("llvm.umin", &[by.ty()], &[by, most]);
        self.b.ashr(value, by)
    }

    /// `shifted`, or zero if the amount is at least the width, where the shift is poison. A select ignores
    /// the side that is not selected, also if it is poison.
    fn clamped(&self, by: Value, shifted: Value) -> Value {
        let width = self.constant(by, u64::from(by.ty().element_bits()));
        let inside = self.b.icmp(IntPred::Ult, by, width);
        self.b.select(inside, shifted, self.b.zero(shifted.ty()))
    }

    /// A Boolean function of up to three words, given by its truth table of `rows` bits. The first word
    /// selects between the halves of the table.
    fn by_table(&self, table: u32, rows: u32, words: &[Value]) -> Value {
        let b = self.b;
        let ty = words.first().map_or(self.int(32), |word| word.ty());
        let all = (1 << rows) - 1;
        if table == 0 {
            return b.zero(ty);
        }
        if table == all {
            return b.ones(ty);
        }
        let half = rows / 2;
        let (low, high) = (table & ((1 << half) - 1), table >> half);
        let half_ones = (1 << half) - 1;
        let Some((choice, rest)) = words.split_first() else { return b.zero(ty) };
        let choice = *choice;
        if rest.is_empty() {
            return if high != 0 { choice } else { b.not(choice) };
        }
        let of = |table| self.by_table(table, half, rest);
        if low == high {
            of(low)
        } else if high == !low & half_ones {
            b.xor(choice, of(low))
        } else if low == 0 {
            b.and(choice, of(high))
        } else if high == 0 {
            b.and(b.not(choice), of(low))
        } else if high == half_ones {
            b.or(choice, of(low))
        } else if low == half_ones {
            b.or(b.not(choice), of(high))
        } else {
            b.or(b.and(choice, of(high)), b.and(b.not(choice), of(low)))
        }
    }

    /// `prmt` with a constant selector: a shuffle of bytes.
    fn permuted_bytes(&self, low: Value, high: Value, selector: u32) -> Value {
        let b = self.b;
        let bytes = b.vec(b.int(8), 4 * self.lanes);
        let (low, high) = (b.bitcast(low, bytes), b.bitcast(high, bytes));
        let total = 4 * self.lanes as i32;
        let pick = |lane: i32, i: i32| {
            let select = (selector >> (4 * i) & 7) as i32;
            4 * lane + (select & 3) + if select & 4 != 0 { total } else { 0 }
        };
        let all = || (0..self.lanes as i32).flat_map(|lane| (0..4).map(move |i| (lane, i)));
        let indices: Vec<i32> = all().map(|(lane, i)| pick(lane, i)).collect();
        let chosen = b.shuffle(low, high, &indices);
        let signs: Vec<bool> = all().map(|(_, i)| selector >> (4 * i) & 8 != 0).collect();
        let result = if signs.contains(&true) {
            let replicated = b.ashr(chosen, b.const_int(bytes, 7));
            let blend: Vec<i32> =
                signs.iter().enumerate().map(|(i, sign)| i as i32 + if *sign { total } else { 0 }).collect();
            b.shuffle(chosen, replicated, &blend)
        } else {
            chosen
        };
        b.bitcast(result, self.int(32))
    }

    /// Byte `index` (0 to 7, 64 bits wide) of a pair of words.
    fn pair_byte(&self, pair: Value, index: Value) -> Value {
        let b = self.b;
        let by = b.shl(index, self.constant(index, 3));
        b.and(b.lshr(pair, by), self.constant(pair, 0xff))
    }

    /// For each result byte, the byte of the pair that the selector picks, and whether only its sign is
    /// replicated.
    fn byte_indices(&self, mode: PrmtMode, selector: Value) -> [(Value, Option<Value>); 4] {
        let b = self.b;
        let k = |bits| self.constant(selector, bits);
        let two = b.and(selector, k(3));
        [0u64, 1, 2, 3].map(|i| match mode {
            PrmtMode::Index => {
                let nibble = b.lshr(selector, k(4 * i));
                let sign = b.icmp(IntPred::Ne, b.and(nibble, k(8)), k(0));
                (b.and(nibble, k(7)), Some(sign))
            }
            PrmtMode::F4e => (b.add(two, k(i)), None),
            PrmtMode::B4e => (b.and(b.sub(two, k(i)), k(7)), None),
            PrmtMode::Rc8 => (two, None),
            PrmtMode::Ecl => (b.intrinsic("llvm.umax", &[two.ty()], &[two, k(i)]), None),
            PrmtMode::Ecr => (b.intrinsic("llvm.umin", &[two.ty()], &[two, k(i)]), None),
            PrmtMode::Rc16 => {
                let first = b.shl(b.and(selector, k(1)), k(1));
                (b.add(first, k(i & 1)), None)
            }
        })
    }
}
