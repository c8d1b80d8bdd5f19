//! Loads, stores and atomics.
//!
//! Invariants: an access is to memory that no other thread stores to: the thread's own bytes in global,
//! shared and local memory, its element of the columns, or read-only memory. Threads modify shared memory
//! only by one commutative operation of one type per address, and drop the old value. Lanes of one warp also
//! operate on bytes of their warp, and keep the old value.

use super::forms::{Spelled, letter, register, vector};
use super::generate::Generator;
use super::run::INPUT;
use super::taste::Taste;
use ptx::isa::{AtomOp, Dir, Op, Slot, Space, Ty, TyKind, Word};

/// Commutative operations with their types; every pair has its own 64 bytes.
const COMMUTING: &[(&str, &[&str])] = &[
    ("and", &["b32", "b64"]),
    ("or", &["b32", "b64"]),
    ("xor", &["b32", "b64"]),
    ("add", &["u32", "s32", "u64"]),
    ("min", &["u32", "s32", "u64", "s64"]),
    ("max", &["u32", "s32", "u64", "s64"]),
];
/// Bytes of all pairs, in global and in shared memory.
pub(super) const COMBINED: u32 = 64 * 17;

/// The most bytes that are added to an address in the input.
const AT: u32 = 16384;

/// The target of an access.
struct Place {
    /// Lines that compute the address.
    before: String,
    /// The text between the brackets.
    address: String,
}

impl Generator<'_> {
    pub(super) fn memory(&mut self) {
        match self.random.below(21) {
            0..=8 => self.access(Op::Ld),
            9..=14 => self.access(Op::St),
            15 => self.access(Op::LdNc),
            16 if !self.function => self.combine(),
            17 if !self.function => self.warp_atomic(),
            16..=18 => self.own_atomic(),
            19 => self.words(),
            _ => {
                let fence = self.random.pick(&["membar.cta", "membar.gl", "prefetch.global.L1 [%inp]"]);
                self.line(format!("{fence};"));
            }
        }
    }

    /// Atomics of lanes of several warps, often of some lanes only.
    pub(super) fn atomics(&mut self) {
        match self.random.below(3) {
            0 => self.combine(),
            1 => self.warp_atomic(),
            _ => self.own_atomic(),
        }
    }

    fn spelled(&mut self, op: Op) -> Option<Spelled> {
        let rows = self.forms.rows(op, |_| true);
        if rows.is_empty() {
            return None;
        }
        (0..20).find_map(|_| {
            let row = self.random.pick(&rows);
            self.forms.spell(&mut self.random, row)
        })
    }

    pub(super) fn access(&mut self, op: Op) {
        let Some(spelled) = self.spelled(op) else { return };
        let mods = &spelled.mods;
        let watches = ["volatile", "relaxed", "acquire", "release", "local"];
        let spins = self.may_spin() && op != Op::St;
        if (self.taste.is_coarse() || spins) && watches.iter().any(|word| spelled.head.contains(word)) {
            return self.lane();
        }
        let (ty, lanes) = (mods.ty(), usize::from(mods.vec()));
        if ty.bits() > 64 || ty.kind() == TyKind::Pred || spelled.head.contains("const[") {
            return;
        }
        let bytes = ty.bits() / 8 * lanes as u32;
        let write = op == Op::St;
        let Some(place) = self.place(mods.space(), bytes, write) else { return };
        let dir = if write { Dir::In } else { Dir::Out };
        let value = if lanes == 1 {
            let wider = ty.kind() != TyKind::Float && self.random.chance(40);
            let bits = if wider { self.random.pick(&[32, 64]).max(ty.bits()) } else { ty.bits() };
            register(&mut self.random, bits)
        } else {
            match vector(&mut self.random, ty, lanes, dir, true) {
                Some(value) => value,
                None => return,
            }
        };
        let guard = self.guard();
        let Place { before, address } = place;
        // A cache policy is an arbitrary 64-bit value here.
        let policy = match mods.has(Word::L2CacheHint) {
            true => format!(", {}", register(&mut self.random, 64)),
            false => String::new(),
        };
        let text = match write {
            true => format!("{before}{guard}{} [{address}], {value}{policy};", spelled.head),
            false => format!("{before}{guard}{} {value}, [{address}]{policy};", spelled.head),
        };
        self.line(text);
    }

    /// An address at which this many bytes may be read, or written.
    fn place(&mut self, space: Space, bytes: u32, write: bool) -> Option<Place> {
        let plain = |address: String| Some(Place { before: String::new(), address });
        match space {
            Space::Global => self.global(bytes, write),
            Space::Shared if self.function || self.taste.is_alone() => None,
            Space::Shared => {
                let at = self.at(32, bytes);
                match self.random.below(3) {
                    0 => plain(format!("%shown+{at}")),
                    1 => {
                        let index = register(&mut self.random, 32);
                        Some(Place {
                            before: format!(
                                "and.b32 %ta, {index}, {};\nadd.u32 %ta, %ta, %shown;\n",
                                mask(32, bytes)
                            ),
                            address: "%ta".to_owned(),
                        })
                    }
                    _ => Some(Place {
                        before: "mul.wide.u32 %da, %tid0, 32;\nmov.u64 %db, sh;\nadd.s64 %da, %da, %db;\n"
                            .to_owned(),
                        address: format!("%da+{at}"),
                    }),
                }
            }
            Space::Local => {
                if self.random.chance(50) {
                    return plain(format!("loc+{}", self.at(128, bytes)));
                }
                let index = register(&mut self.random, 32);
                Some(Place {
                    before: format!(
                        "and.b32 %ta, {index}, {};\nmov.u32 %tb, loc;\nadd.u32 %ta, %ta, %tb;\n",
                        mask(128, bytes)
                    ),
                    address: "%ta".to_owned(),
                })
            }
            Space::Const if write => None,
            Space::Const => {
                if self.random.chance(40) {
                    return plain(format!("table+{}", self.at(256, bytes)));
                }
                let index =
                    if self.random.chance(50) { "%tid0".to_owned() } else { register(&mut self.random, 32) };
                Some(Place {
                    before: format!(
                        "and.b32 %ta, {index}, {};\ncvt.u64.u32 %da, %ta;\nmov.u64 %db, table;\nadd.s64 %da, %da, %db;\n",
                        mask(256, bytes)
                    ),
                    address: "%da".to_owned(),
                })
            }
            Space::Param if write || self.function => None,
            Space::Param => {
                let (name, most) = self.random.pick(&[("p_c", 8), ("p_a", 4), ("p_b", 4)]);
                (bytes <= most).then(|| Place { before: String::new(), address: name.to_owned() })
            }
            Space::Generic => match self.random.below(3) {
                0 if !self.function && !self.taste.is_alone() => {
                    let at = self.at(32, bytes);
                    plain(format!("%gsh+{at}"))
                }
                1 if !self.taste.is_coarse() => {
                    let at = self.at(128, bytes);
                    plain(format!("%gloc+{at}"))
                }
                _ => self.global(bytes, write),
            },
            Space::Reg | Space::Sreg | Space::Tex => None,
        }
    }

    /// Loads consecutive words per lane in random order, sometimes with stores in between.
    pub(super) fn words(&mut self) {
        let bits = self.random.pick(&[8, 16, 32, 32, 32, 64]);
        let bytes = bits / 8;
        let index = register(&mut self.random, 32);
        let own = self.random.chance(30);
        let (base, room) = if own { ("%own", 64) } else { ("%inp", 32768) };
        let mut text = format!(
            "and.b32 %ta, {index}, {};\ncvt.u64.u32 %da, %ta;\nadd.s64 %da, {base}, %da;\n",
            mask(room, bytes)
        );
        if self.random.chance(if self.taste.is_alone() { 60 } else { 20 }) {
            // Either of two allocations, in lanes side by side: native code may have to be left.
            let p = self.random.below(super::forms::PREDICATES);
            text += &format!("selp.b64 %da, %own, %da, %p{p};\n");
        }
        let first = self.at(64, bytes);
        let mut at: Vec<u32> = (0..2 + self.random.below(5) as u32).map(|k| first + k * bytes).collect();
        while !at.is_empty() {
            let at = at.swap_remove(self.random.below(at.len()));
            if self.random.chance(6) {
                let value = register(&mut self.random, 32);
                text += &format!("st.global.b32 [%own+{}], {value};\n", self.at(128, 4));
            }
            let ty = match bits {
                8 | 16 => format!("{}{bits}", self.random.pick(&["s", "u"])),
                _ => format!("b{bits}"),
            };
            let value = register(&mut self.random, bits.max(16));
            text += &format!("ld.global.{ty} {value}, [%da+{at}];\n");
        }
        self.line(text);
    }

    fn global(&mut self, bytes: u32, write: bool) -> Option<Place> {
        if write || self.random.chance(40) {
            if !self.function && self.random.chance(40) {
                // A column: neighbours in the warp are neighbours in memory.
                let column = self.random.below(8) as u32 * self.threads() * 16;
                return Some(Place {
                    before: String::new(),
                    address: format!("%col+{}", column + self.at(16, bytes)),
                });
            }
            if self.random.chance(50) {
                return Some(Place {
                    before: String::new(),
                    address: format!("%own+{}", self.at(192, bytes)),
                });
            }
            let index = register(&mut self.random, 32);
            let base = if self.random.chance(50) { "%own" } else { "%da" };
            let before = match base {
                "%own" => format!(
                    "and.b32 %ta, {index}, {};\ncvt.u64.u32 %da, %ta;\nadd.s64 %da, %own, %da;\n",
                    mask(128, bytes)
                ),
                _ => format!(
                    "and.b32 %ta, {index}, {};\ncvt.s64.s32 %db, %ta;\nadd.s64 %da, %db, %own;\n",
                    mask(64, bytes)
                ),
            };
            return Some(Place { before, address: format!("%da+{}", self.at(64, bytes)) });
        }
        // Read only.
        let at = self.at(AT, bytes);
        let before = match self.random.below(10) {
            8 => format!(
                "{}mul.wide.s32 %da, %ta, {bytes};\nadd.s64 %da, %inp, %da;\n",
                self.near_affine_index()
            ),
            6 => {
                let step = match self.random.below(3) {
                    0 => self.block[0].to_string(),
                    1 => self.random.pick(&[1, 17, 32, 64]).to_string(),
                    _ => "%n0".to_owned(),
                };
                // Known when the code is made, or the same in all threads at least.
                let known = self.random.pick(&["mov.u32 %n0, %ntid.x;", "and.b32 %n0, %u0, 31;"]);
                // By columns only where the last of them lies within the input. A step is at most 64 or the
                // width of the block.
                let [x, y, _] = self.block;
                let last = (x - 1) * x.max(64) + y - 1;
                let sum = match self.random.below(3) {
                    0 if (last + 1) * bytes + AT <= INPUT as u32 => format!("%t0, {step}, %t1"),
                    _ => format!("%t1, {step}, %t0"),
                };
                format!(
                    "{known}\nmov.u32 %t0, %tid.x;\nmov.u32 %t1, %tid.y;\nmad.lo.u32 %ta, {sum};\n\
                     mul.wide.u32 %da, %ta, {bytes};\nadd.s64 %da, %inp, %da;\n"
                )
            }
            7 => {
                let p = self.random.below(super::forms::PREDICATES);
                let at = self.at(128, bytes);
                // Either of two allocations, in lanes side by side.
                return Some(Place {
                    before: format!("selp.b64 %da, %own, %inp, %p{p};\n"),
                    address: format!("%da+{at}"),
                });
            }
            0 => return Some(Place { before: String::new(), address: format!("%inp+{at}") }),
            1 => format!("mul.wide.u32 %da, %tid0, {bytes};\nadd.s64 %da, %da, %inp;\n"),
            2 => format!(
                "sub.u32 %ta, 2047, %gid;\nmul.wide.s32 %da, %ta, {bytes};\nadd.s64 %da, %inp, %da;\n"
            ),
            3 => {
                let step = self.random.pick(&[2, 3]) * bytes.min(8).max(bytes);
                format!("and.b32 %ta, %tid0, 255;\nmul.wide.u32 %da, %ta, {step};\nadd.s64 %da, %da, %inp;\n")
            }
            4 => {
                let k = self.random.below(64);
                format!(
                    "xor.b32 %ta, %tid0, {k};\nmul.wide.u32 %da, %ta, {bytes};\nadd.s64 %da, %da, %inp;\n"
                )
            }
            _ => {
                let index = register(&mut self.random, 32);
                format!(
                    "and.b32 %ta, {index}, {};\ncvt.u64.u32 %da, %ta;\nadd.s64 %da, %inp, %da;\n",
                    mask(32768, bytes)
                )
            }
        };
        Some(Place { before, address: format!("%da+{at}") })
    }

    /// An index from 0 to 1,023 in `%ta` that is clamped, wrapped around or divided: affine in most warps.
    fn near_affine_index(&mut self) -> String {
        let limit = match self.random.chance(50) {
            true => self.random.pick(&[1, 31, 32, 100, 1023]).to_string(),
            false => "%n0".to_owned(),
        };
        let k = self.random.below(40);
        let index = match self.random.below(6) {
            0 => format!("sub.s32 %ta, %tid0, {k};\nmax.s32 %ta, %ta, 0;\nmin.s32 %ta, %ta, {limit};\n"),
            1 => format!("add.u32 %ta, %tid0, {k};\nmin.u32 %ta, {limit}, %ta;\n"),
            2 => format!("add.s32 %ta, %tid0, {k};\nrem.s32 %ta, %ta, {limit};\n"),
            3 => format!("sub.u32 %ta, %tid0, {k};\nrem.u32 %ta, %ta, {limit};\n"),
            4 => format!("div.u32 %ta, %tid0, {limit};\n"),
            _ => format!("max.u32 %ta, %tid0, {limit};\nmin.u32 %ta, %ta, 1000;\n"),
        };
        format!("and.b32 %n0, %u0, 1022;\nadd.u32 %n0, %n0, 1;\n{index}")
    }

    /// Whether what is generated may be part of a loop. One that looks at what others write gives way early,
    /// and how its lanes meet then is the engine's; so do atomic operations that need not change anything. A
    /// function may be called in one.
    fn may_spin(&self) -> bool {
        self.counters > 0 || self.function
    }

    /// An integer for a sum: one that changes what it is added to, where that matters, and how to get it.
    fn addend(&mut self, bits: u32) -> (String, String) {
        let value = register(&mut self.random, bits);
        if !self.may_spin() {
            return (value, String::new());
        }
        let odd = if bits == 32 { "%tb" } else { "%db" };
        (odd.to_owned(), format!("or.b{bits} {odd}, {value}, 1;\n"))
    }

    /// A multiple of the size, with room for the access.
    fn at(&mut self, room: u32, bytes: u32) -> u32 {
        self.random.below((room / bytes) as usize) as u32 * bytes
    }

    /// Threads of all CTAs, or of one, combine values.
    fn combine(&mut self) {
        let all: Vec<(&str, &str)> =
            COMMUTING.iter().flat_map(|(op, types)| types.iter().map(move |ty| (*op, *ty))).collect();
        let spins = self.may_spin();
        let fit: Vec<usize> = (0..all.len()).filter(|index| !spins || all[*index].0 == "add").collect();
        let index = self.random.pick(&fit);
        let (op, ty) = all[index];
        let bits: u32 = ty[1..].parse().unwrap_or(32);
        let (value, odd) = self.addend(bits);
        let guard = self.guard();
        let region = 64 * index as u32;
        let shared = self.random.chance(50);
        // Guards are few elsewhere.
        let guard = if guard.is_empty() && self.taste == Taste::Coarse { self.some() } else { guard };
        self.combined |= shared;
        let lane = register(&mut self.random, 32);
        let spread = if self.random.chance(40) { 0 } else { mask(64, bits / 8) };
        let (space, before) = match shared {
            true => ("shared", format!("{odd}and.b32 %ta, {lane}, {spread};\nadd.u32 %ta, %ta, %sh;\n")),
            false => (
                "global",
                format!(
                    "{odd}and.b32 %ta, {lane}, {spread};\ncvt.u64.u32 %da, %ta;\nadd.s64 %da, %da, %com;\n"
                ),
            ),
        };
        let address = if shared { format!("%ta+{}", 12288 + region) } else { format!("%da+{region}") };
        // The first form keeps the old value where it is not read.
        let text = match self.random.below(3) {
            0 if bits == 32 => format!("{before}{guard}atom.{space}.{op}.{ty} %tb, [{address}], {value};"),
            0 => format!("{before}{guard}atom.{space}.{op}.{ty} %db, [{address}], {value};"),
            _ => format!("{before}{guard}red.{space}.{op}.{ty} [{address}], {value};"),
        };
        self.line(text);
    }

    /// Lanes of one warp, on few addresses.
    fn warp_atomic(&mut self) {
        let bytes = 8;
        let index = register(&mut self.random, 32);
        let index = if self.random.chance(30) { "%u1".to_owned() } else { index };
        let spread = self.random.pick(&[0, 8, 24, 56]);
        let before =
            format!("and.b32 %ta, {index}, {spread};\ncvt.u64.u32 %da, %ta;\nadd.s64 %da, %da, %wrp;\n");
        self.atomic(before, "%da", "global", bytes);
    }

    /// A thread alone.
    fn own_atomic(&mut self) {
        let at = self.random.below(8) * 8;
        if self.random.chance(50) || self.function {
            self.atomic(String::new(), &format!("%own+{at}"), "global", 8);
        } else {
            self.atomic(String::new(), &format!("%shown+{}", at % 32), "shared", 8);
        }
    }

    fn atomic(&mut self, before: String, address: &str, space: &str, most: u32) {
        let op = if self.random.chance(75) { Op::Atom } else { Op::Red };
        for _ in 0..20 {
            let Some(spelled) = self.spelled(op) else { return };
            let mods = &spelled.mods;
            let ty = mods.ty_in(Slot::Type).unwrap_or(Ty::B32);
            if mods.space().name() != space || ty.bits() / 8 > most || ty.bits() < 16 {
                continue;
            }
            // A number may stay as it is when one is added to it.
            let counts =
                matches!(mods.atom_op(), Some(AtomOp::Add | AtomOp::Inc | AtomOp::Dec)) && !ty.is_float();
            if self.may_spin() && !counts {
                continue;
            }
            let bits = ty.bits();
            let mut before = before;
            let guard = if self.taste == Taste::Coarse { self.some() } else { self.guard() };
            let mut operands: Vec<String> = Vec::new();
            for operand in &spelled.row.form().operands {
                operands.push(match (operand.dir, operand.name) {
                    (_, "a") if matches!(operand.kind, ptx::isa::Kind::Address(_)) => format!("[{address}]"),
                    (_, "policy") => register(&mut self.random, 64),
                    (Dir::In, _) if counts => {
                        let (value, odd) = self.addend(bits);
                        before.push_str(&odd);
                        value
                    }
                    _ => {
                        debug_assert!(letter(bits) != 'h' || bits == 16);
                        register(&mut self.random, bits)
                    }
                });
            }
            return self.line(format!("{before}{guard}{} {};", spelled.head, operands.join(", ")));
        }
    }
}

/// The bits of an index that keep it within `room` bytes (a power of two) and aligned.
fn mask(room: u32, bytes: u32) -> u32 {
    (room - 1) & !(bytes - 1)
}
