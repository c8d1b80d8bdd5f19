//! `cargo xtask prove [--every N] [NAME...]`: compares the approximate instructions with the manual's bounds,
//! over every operand.
//!
//! Unary `.f32` instructions are tested with all 2^32 operands, with and without `.ftz`; the
//! `.approx.ftz.f64` forms with all 2^32 upper words (the lower word, which they ignore, is scrambled);
//! division with operands drawn from the significant bits. The tables of special operands (PTX ISA 6.4
//! §9.7.3.13 to §9.7.3.21) hold exactly. Everywhere else the error is compared with the manual's bound, over
//! the operands for which the manual states it, and with our own promise over all operands.
//!
//! The reference is the host's function in double precision. Its error is taken as 2^-48 of the result,
//! sixteen units in the last place; C libraries are documented to be within one or two. This is added to
//! every error before the comparison. An `.f32` has 2^-24, so it adds 2^-24 of a unit in the last place.
//! Division does not need it: its bound is an inequality of integers.
//!
//! Native code computes `rsqrt.approx.f32` on some processors from an estimate, whose bits differ between
//! makers. The same algorithm is executed here for all significands and for estimates across the range that
//! the makers promise; every result has the bits of the definition.
//!
//! With `--every N` each N-th operand is tested. The tests use a prime, so that all exponents, signs and
//! special values occur.

use ptx_sem::{
    cos_approx_f32, div_approx_f32, div_full_f32, ex2_approx_f32, ftz_f32, lg2_approx_f32, rcp_approx_f32,
    rcp_approx_ftz_f64, rsqrt_approx_f32, rsqrt_approx_f64, rsqrt_approx_ftz_f64, sin_approx_f32,
    sqrt_approx_f32, tanh_approx_f32,
};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// The measure of the error.
#[derive(Clone, Copy)]
enum Measure {
    /// |result - truth| is at most two to this power.
    Absolute(f64),
    /// |result - truth| is at most this many units in the last place of the truth.
    Ulp(f64),
    /// |result / truth - 1| is at most two to this power.
    Relative(f64),
    /// The bits of the result are those of the definition.
    Bits,
}

/// A bound and the operands to which it applies.
struct Claim {
    /// The operands, in words.
    over: &'static str,
    /// The operands, as a predicate.
    holds: fn(f64) -> bool,
    measure: Measure,
    /// Whether the manual states it; otherwise it is our promise.
    manual: bool,
}

const fn claim(over: &'static str, holds: fn(f64) -> bool, measure: Measure, manual: bool) -> Claim {
    Claim { over, holds, measure, manual }
}

const fn everywhere(measure: Measure) -> Claim {
    claim("all", |_| true, measure, false)
}

/// Results for -Inf, -0, +0, +Inf from the manual's tables; with `.ftz` a subnormal has the result of its
/// zero.
type Table = [u32; 4];

/// An instruction with one `.f32` operand.
struct Single {
    name: &'static str,
    result: fn(f32) -> f32,
    truth: fn(f64) -> f64,
    table: Table,
    claims: &'static [Claim],
}

const INF: u32 = 0x7f80_0000;
const SIGN: u32 = 0x8000_0000;
const NAN: u32 = 0x7fff_ffff;
const ONE: u32 = 0x3f80_0000;
const NAN_F64: u64 = 0x7fff_ffff_0000_0000;

const FIRST_QUADRANT: fn(f64) -> bool = |a| (0.0..=std::f64::consts::FRAC_PI_2).contains(&a);

const SINGLES: &[Single] = &[
    Single {
        name: "rcp.approx.f32",
        result: rcp_approx_f32,
        truth: |a| 1.0 / a,
        table: [SIGN, SIGN | INF, INF, 0],
        claims: &[
            claim("1 to 2", |a| (1.0..=2.0).contains(&a), Measure::Absolute(-23.0), true),
            everywhere(Measure::Ulp(0.5)),
        ],
    },
    Single {
        name: "sqrt.approx.f32",
        result: sqrt_approx_f32,
        truth: f64::sqrt,
        table: [NAN, SIGN, 0, INF],
        claims: &[everywhere(Measure::Ulp(0.5))],
    },
    Single {
        name: "rsqrt.approx.f32",
        result: rsqrt_approx_f32,
        truth: |a| 1.0 / a.sqrt(),
        table: [NAN, SIGN | INF, INF, 0],
        claims: &[
            claim("1 to 4", |a| (1.0..=4.0).contains(&a), Measure::Absolute(-22.4), true),
            everywhere(Measure::Ulp(1.5)),
        ],
    },
    Single {
        name: "sin.approx.f32",
        result: sin_approx_f32,
        truth: f64::sin,
        table: [NAN, SIGN, 0, NAN],
        claims: &[
            claim("0 to pi/2", FIRST_QUADRANT, Measure::Absolute(-20.9), true),
            everywhere(Measure::Ulp(1.75)),
        ],
    },
    Single {
        name: "cos.approx.f32",
        result: cos_approx_f32,
        truth: f64::cos,
        table: [NAN, ONE, ONE, NAN],
        claims: &[
            claim("0 to pi/2", FIRST_QUADRANT, Measure::Absolute(-20.9), true),
            everywhere(Measure::Ulp(1.75)),
        ],
    },
    Single {
        name: "lg2.approx.f32",
        result: lg2_approx_f32,
        truth: f64::log2,
        table: [NAN, SIGN | INF, SIGN | INF, INF],
        claims: &[
            claim("1 to 2", |a| (1.0..2.0).contains(&a), Measure::Absolute(-22.6), true),
            everywhere(Measure::Ulp(1.0)),
        ],
    },
    Single {
        name: "ex2.approx.f32",
        result: ex2_approx_f32,
        truth: f64::exp2,
        table: [0, ONE, ONE, INF],
        claims: &[
            claim("0 to 1", |a| (0.0..1.0).contains(&a), Measure::Absolute(-22.5), true),
            everywhere(Measure::Ulp(1.0)),
        ],
    },
    Single {
        name: "tanh.approx.f32",
        result: tanh_approx_f32,
        truth: f64::tanh,
        table: [SIGN | ONE, SIGN, 0, ONE],
        claims: &[claim("all", |_| true, Measure::Relative(-11.0), true), everywhere(Measure::Ulp(2.0))],
    },
];

/// An instruction with one `.f64` operand, of which it reads all bits or the upper word.
struct Double {
    name: &'static str,
    result: fn(f64) -> f64,
    /// The relative error of a result, from the residual of multiplying it back, which is computed without
    /// rounding.
    error: fn(f64, f64) -> f64,
    /// As [`Table`].
    table: [u64; 4],
    upper_only: bool,
    /// Two to this power is our promise for the relative error.
    bound: f64,
}

const INF_F64: u64 = 0x7ff0_0000_0000_0000;
const SIGN_F64: u64 = 1 << 63;

const DOUBLES: &[Double] = &[
    Double {
        name: "rcp.approx.ftz.f64",
        result: rcp_approx_ftz_f64,
        error: reciprocal_error,
        table: [SIGN_F64, SIGN_F64 | INF_F64, INF_F64, 0],
        upper_only: true,
        bound: -20.0,
    },
    Double {
        name: "rsqrt.approx.ftz.f64",
        result: rsqrt_approx_ftz_f64,
        error: reciprocal_root_error,
        table: [NAN_F64, SIGN_F64 | INF_F64, INF_F64, 0],
        upper_only: true,
        bound: -20.0,
    },
    Double {
        name: "rsqrt.approx.f64",
        result: rsqrt_approx_f64,
        error: reciprocal_root_error,
        table: [0x7ff8_0000_0000_0000, SIGN_F64 | INF_F64, INF_F64, 0],
        upper_only: false,
        bound: -52.0,
    },
];

/// a * 2^n, in steps that stay within the range; exact if the result is normal.
fn scaled(mut a: f64, mut n: i32) -> f64 {
    while n != 0 {
        let step = n.clamp(-1000, 1000);
        a *= f64::from(step).exp2();
        n -= step;
    }
    a
}

/// The exponent of a positive number.
fn exponent(a: f64) -> i32 {
    let scale = if a.is_subnormal() { 100 } else { 0 };
    (scaled(a, scale).to_bits() >> 52) as i32 - 1023 - scale
}

/// |r a - 1|: a fused multiply-add rounds the difference once, after the exact product. Both are first scaled
/// to about 1.
fn reciprocal_error(a: f64, r: f64) -> f64 {
    let e = exponent(a.abs());
    scaled(r, e).mul_add(scaled(a, -e), -1.0).abs()
}

/// |r sqrt(a) - 1| = |r^2 a - 1| / 2, to first order: r^2 = p + q and p a = s + t exactly, and s - 1 is exact
/// too.
fn reciprocal_root_error(a: f64, r: f64) -> f64 {
    let half = exponent(a).div_euclid(2);
    let (a, r) = (scaled(a, -2 * half), scaled(r, half));
    let p = r * r;
    let q = r.mul_add(r, -p);
    let s = p * a;
    let t = p.mul_add(a, -s);
    ((s - 1.0) + (t + q * a)).abs() / 2.0
}

/// The largest error under one claim, as a fraction of the bound, and its operand.
#[derive(Clone, Copy, Default)]
struct Worst {
    share: f64,
    operand: u64,
    tried: u64,
}

impl Worst {
    fn meet(&mut self, share: f64, operand: u64) {
        self.tried += 1;
        if share > self.share || share.is_nan() {
            (self.share, self.operand) = (share, operand);
        }
    }

    fn merge(&mut self, other: &Self) {
        let tried = self.tried + other.tried;
        if other.share > self.share || other.share == self.share && other.operand < self.operand {
            *self = *other;
        }
        self.tried = tried;
    }
}

/// The result of one worker.
#[derive(Clone, Default)]
struct Found {
    worst: Vec<Worst>,
    /// Results that no table and no claim allows.
    wrong: Vec<String>,
    wrong_count: u64,
}

impl Found {
    fn wrong(&mut self, what: impl FnOnce() -> String) {
        self.wrong_count += 1;
        if self.wrong.len() < 5 {
            self.wrong.push(what());
        }
    }

    fn merge(&mut self, other: Self) {
        self.worst.resize(other.worst.len(), Worst::default());
        for (mine, theirs) in self.worst.iter_mut().zip(&other.worst) {
            mine.merge(theirs);
        }
        self.wrong.extend(other.wrong);
        self.wrong.truncate(5);
        self.wrong_count += other.wrong_count;
    }
}

/// The unit in the last place of an `.f32` near `truth`.
fn ulp(truth: f64) -> f64 {
    let exponent = ((truth.to_bits() >> 52 & 0x7ff) as i64 - 1023).max(-126);
    f64::from_bits(((exponent - 23 + 1023) as u64) << 52)
}

impl Measure {
    /// The error as a fraction of the bound.
    fn share(self, result: f64, truth: f64) -> f64 {
        if result == truth {
            return 0.0;
        }
        match self {
            Measure::Absolute(power) => uncertain(result, truth) / power.exp2(),
            Measure::Ulp(count) => uncertain(result, truth) / (count * ulp(truth)),
            Measure::Relative(power) => uncertain(result, truth) / (truth.abs() * power.exp2()),
            Measure::Bits => f64::INFINITY,
        }
    }

    fn show(self) -> String {
        match self {
            Measure::Absolute(power) => format!("2^{power} absolute"),
            Measure::Ulp(count) => format!("{count} ulp"),
            Measure::Relative(power) => format!("2^{power} relative"),
            Measure::Bits => "same bits".to_owned(),
        }
    }

    fn show_share(self, share: f64) -> String {
        match self {
            Measure::Absolute(power) if share > 0.0 => format!("2^{:.2}", share.log2() + power),
            Measure::Relative(power) if share > 0.0 => format!("2^{:.2}", share.log2() + power),
            Measure::Absolute(_) | Measure::Relative(_) => "0".to_owned(),
            Measure::Bits => if share > 0.0 { "other bits" } else { "0" }.to_owned(),
            Measure::Ulp(count) => format!("{:.4} ulp", share * count),
        }
    }
}

/// The error, including the possible error of the truth. A rounded result may be off by exactly half a unit;
/// in this case nothing is added if the truth is an IEEE operation on doubles, whose rounding cannot cross a
/// tie of `.f32`.
fn uncertain(result: f64, truth: f64) -> f64 {
    let error = (result - truth).abs();
    let half = ulp(truth) / 2.0;
    if error <= half { error } else { error + truth.abs() * (-48f64).exp2() }
}

impl Single {
    fn meet(&self, bits: u32, found: &mut Found) {
        let a = f32::from_bits(bits);
        let result = (self.result)(a);
        let flushed = ftz_f32((self.result)(ftz_f32(a)));
        let [minus_inf, minus_zero, zero, inf] = self.table;
        let wrong = |found: &mut Found, with: &str, result: f32, expected: u32| {
            let bits = result.to_bits();
            found.wrong(|| {
                format!("{}{with} {:#010x}: {bits:#010x}, not {expected:#010x}", self.name, a.to_bits())
            });
        };
        let tabulated = match bits {
            _ if a.is_nan() => Some(NAN),
            0 => Some(zero),
            SIGN => Some(minus_zero),
            INF => Some(inf),
            0xff80_0000 => Some(minus_inf),
            _ => None,
        };
        if let Some(expected) = tabulated {
            if result.to_bits() != expected {
                wrong(found, "", result, expected);
            }
            if flushed.to_bits() != expected {
                wrong(found, " with .ftz", flushed, expected);
            }
            return;
        }
        // With `.ftz`: a subnormal operand is its zero; a subnormal result is the zero of its sign; all else
        // is unchanged.
        let expected = if a.is_subnormal() {
            if a < 0.0 { minus_zero } else { zero }
        } else if result.is_subnormal() {
            result.to_bits() & SIGN
        } else {
            result.to_bits()
        };
        if flushed.to_bits() != expected {
            wrong(found, " with .ftz", flushed, expected);
        }
        let truth = (self.truth)(f64::from(a));
        if truth.is_nan() || result.is_nan() {
            if !truth.is_nan() || result.to_bits() != NAN {
                wrong(found, "", result, NAN);
            }
            return;
        }
        // Beyond the largest `.f32`, infinity represents 2^128, the next number.
        let value =
            if result.is_infinite() { f64::from(result.signum()) * 128f64.exp2() } else { f64::from(result) };
        let truth = truth.clamp(-(128f64.exp2()), 128f64.exp2());
        for (claim, worst) in self.claims.iter().zip(&mut found.worst) {
            if (claim.holds)(f64::from(a)) {
                worst.meet(claim.measure.share(value, truth), u64::from(bits));
            }
        }
    }
}

impl Double {
    fn meet(&self, upper: u32, found: &mut Found) {
        let lower = upper.wrapping_mul(0x9e37_79b9) ^ upper >> 15;
        let whole = u64::from(upper) << 32 | u64::from(lower);
        let seen = if self.upper_only { u64::from(upper) << 32 } else { whole };
        let result = (self.result)(f64::from_bits(whole));
        let mut a = f64::from_bits(seen);
        if self.upper_only && a.is_subnormal() {
            a = if a < 0.0 { -0.0 } else { 0.0 };
        }
        let [minus_inf, minus_zero, zero, inf] = self.table;
        // The root of a negative number is NaN; the reciprocal of the largest numbers is subnormal and is
        // flushed.
        let rooted = minus_inf & INF_F64 == INF_F64;
        let flushed = !rooted && exponent(a.abs()) >= 1022 && a.abs() > 1022f64.exp2();
        let expected = match a.to_bits() {
            _ if a.is_nan() => Some(if self.upper_only { NAN_F64 } else { a.to_bits() | 1 << 51 }),
            0 => Some(zero),
            SIGN_F64 => Some(minus_zero),
            INF_F64 => Some(inf),
            0xfff0_0000_0000_0000 => Some(minus_inf),
            _ if rooted && a < 0.0 => Some(minus_inf),
            _ if flushed => Some(a.to_bits() & SIGN_F64),
            _ => None,
        };
        let bits = result.to_bits();
        if expected.is_some_and(|e| e != bits) || self.upper_only && bits as u32 != 0 {
            found.wrong(|| format!("{} {whole:#018x}: {bits:#018x}, not {expected:x?}", self.name));
        }
        if expected.is_none() {
            found.worst[0].meet((self.error)(a, result) / self.bound.exp2(), whole);
        }
    }
}

type Division = fn(f32, f32) -> f32;

/// `div.approx` and `div.full`: |result - a / b| <= 2 ulp, as an inequality of integers. The manual bounds
/// `div.approx` up to a divisor of 2^126; beyond that, according to the CUDA guide, it gives 0, or NaN for an
/// infinite dividend.
const DIVISIONS: &[(&str, Division)] = &[("div.approx.f32", div_approx_f32), ("div.full.f32", div_full_f32)];

/// m * 2^e of a finite `.f32`.
fn parts(a: f32) -> (i128, i32) {
    let (biased, fraction) = ((a.to_bits() >> 23 & 0xff) as i32, i128::from(a.to_bits() & 0x7f_ffff));
    if biased == 0 { (fraction, -149) } else { (fraction | 1 << 23, biased - 150) }
}

/// A hash: every bit of the argument affects every bit of the result.
fn scrambled(mut x: u64) -> u64 {
    x = (x ^ x >> 31).wrapping_mul(0x7fb5_d329_728e_a185);
    x = (x ^ x >> 27).wrapping_mul(0x81da_def4_bc2d_d44d);
    x ^ x >> 33
}

/// Operands for division: random bits, mantissas near the ends of a binade, products of small numbers, powers
/// of two.
fn division_operands(number: u64) -> (f32, f32) {
    let draw = scrambled(number);
    let single = |bits: u64, kind: u64| {
        let (sign_exponent, fraction) = (bits as u32 & 0xff80_0000, (bits >> 32) as u32);
        f32::from_bits(match kind & 3 {
            0 | 1 => sign_exponent | fraction >> 9,
            2 => sign_exponent | (fraction & 0x3f).wrapping_sub(32) & 0x7f_ffff,
            _ => sign_exponent | 1 << (fraction % 23) | fraction >> 30,
        })
    };
    (single(scrambled(draw ^ 0xa5), draw), single(scrambled(draw ^ 0x5a), draw >> 2))
}

fn meet_division(name: &str, divide: Division, number: u64, found: &mut Found) {
    let (a, b) = division_operands(number);
    let q = divide(a, b);
    let key = u64::from(a.to_bits()) << 32 | u64::from(b.to_bits());
    let beyond = name.starts_with("div.approx") && b.is_finite() && b.abs() > 2f32.powi(126);
    let special = !a.is_finite() || !b.is_finite() || a == 0.0 || b == 0.0;
    if special || beyond {
        // IEEE results. A divisor beyond the bound counts as infinity.
        let endless = b.is_infinite() || beyond;
        let expected = if a.is_nan() || b.is_nan() || (a == 0.0 && b == 0.0) || (a.is_infinite() && endless) {
            NAN
        } else if beyond {
            (a.to_bits() ^ b.to_bits()) & SIGN
        } else {
            let magnitude = if a.is_infinite() || b == 0.0 { INF } else { 0 };
            (a.to_bits() ^ b.to_bits()) & SIGN | magnitude
        };
        if q.to_bits() != expected {
            found.wrong(|| format!("{name} {key:#018x}: {:#010x}, not {expected:#010x}", q.to_bits()));
        }
        return;
    }
    if q.is_sign_negative() != (a.is_sign_negative() != b.is_sign_negative()) || q.is_nan() {
        found.wrong(|| format!("{name} {key:#018x}: sign of {:#010x}", q.to_bits()));
        return;
    }
    // |qm 2^qe - (am 2^ae) / (bm 2^be)| <= 2 * 2^qe, all positive; infinity represents 2^128.
    let ((am, ae), (bm, be)) = (parts(a), parts(b));
    let (qm, qe) = if q.is_infinite() { (1 << 24, 104) } else { parts(q) };
    let shift = ae - be - qe;
    // A quotient whose exponent is further off than this is wrong, or out of range.
    if shift >= 60 {
        if !q.is_infinite() {
            found.wrong(|| format!("{name} {key:#018x}: {:#010x}", q.to_bits()));
        }
        return;
    }
    let (numerator, product) =
        if shift >= 0 { (am << shift, qm * bm) } else { (am, (qm * bm) << (-shift).min(70)) };
    let unit = if shift >= 0 { bm } else { bm << (-shift).min(70) };
    let overflow = q.is_infinite() && numerator >= product;
    let error = if overflow { 0 } else { (numerator - product).abs() };
    found.worst[0].meet(error as f64 / (2 * unit) as f64, key);
}

/// `rsqrt.approx.f32` as native code computes it from an estimate: `refined_root` in
/// `ptx-jit/src/isel/approx.rs`.
fn refined_root(a: f32, estimate: f32) -> f32 {
    let (g, h) = (a * estimate, estimate * 0.5);
    let r = (-h).mul_add(g, 0.5);
    let (g, h) = (g.mul_add(r, g), h.mul_add(r, h));
    let root = (-g).mul_add(g, a).mul_add(h, g);
    let step = |y: f32| y.mul_add((-root).mul_add(y, 1.0), y);
    step(step(h * 2.000_000_2))
}

const ESTIMATED: &str = "rsqrt.approx.f32 from an estimate";
/// Estimates of each operand: the ends of the range of relative errors, 2^-14 on both sides, and between
/// them.
const ESTIMATES: i32 = 16;

/// At least every so manyth significand is tested, whatever is asked for.
const ESTIMATES_EVERY: u64 = 997;

/// Compares the algorithm with the definition, for one significand of two binades: other exponents scale all
/// steps by powers of two.
fn meet_estimates(number: u64, found: &mut Found) {
    let bits = ONE + number as u32;
    let a = f32::from_bits(bits);
    let expected = rsqrt_approx_f32(a).to_bits();
    let truth = 1.0 / f64::from(a).sqrt();
    for step in 0..=ESTIMATES {
        let error = (f64::from(2 * step) / f64::from(ESTIMATES) - 1.0) * (-14f64).exp2();
        let same = refined_root(a, (truth * (1.0 + error)) as f32).to_bits() == expected;
        found.worst[0].meet(if same { 0.0 } else { f64::INFINITY }, u64::from(bits));
    }
}

/// The number of tested operands of division.
const DIVISION_TRIALS: u64 = 1 << 28;

/// Runs `meet` on 0, `every`, 2 `every`... below `end` on all cores.
fn all(end: u64, every: u64, claims: usize, meet: impl Fn(u64, &mut Found) + Sync) -> Found {
    const CHUNK: u64 = 1 << 20;
    let next = AtomicU64::new(0);
    let count = end.div_ceil(every);
    let mut total = Found { worst: vec![Worst::default(); claims], ..Found::default() };
    let empty = total.clone();
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        let work = || {
            let mut found = empty.clone();
            loop {
                let first = next.fetch_add(CHUNK, Ordering::Relaxed);
                if first >= count {
                    return found;
                }
                for index in first..(first + CHUNK).min(count) {
                    meet(index * every, &mut found);
                }
            }
        };
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        for handle in handles {
            total.merge(handle.join().expect("a worker only computes"));
        }
    });
    total
}

/// A row of the report for each claim; the second part lists violations.
fn report(name: &str, claims: &[(&str, Measure, bool)], found: &Found) -> (String, Vec<String>) {
    let (mut rows, mut offences) = (String::new(), found.wrong.clone());
    if found.wrong_count > found.wrong.len() as u64 {
        offences.push(format!("{name}: and {} more", found.wrong_count - found.wrong.len() as u64));
    }
    for ((over, measure, manual), worst) in claims.iter().zip(&found.worst) {
        let _ = writeln!(
            rows,
            "| `{name}` | {over} | {} | {} | {} | {:#x} | {} |",
            if *manual { "manual" } else { "ours" },
            measure.show(),
            measure.show_share(worst.share),
            worst.operand,
            worst.tried,
        );
        // Not "greater": a NaN must also be a violation.
        if !matches!(
            worst.share.partial_cmp(&1.0),
            Some(std::cmp::Ordering::Less | std::cmp::Ordering::Equal)
        ) {
            offences.push(format!(
                "{name} over {over}: {} at {:#x}",
                measure.show_share(worst.share),
                worst.operand
            ));
        }
    }
    (rows, offences)
}

/// Tests the named instructions (all, if none is named) with every `every`-th operand.
fn proof(names: &[String], every: u64, mut show: impl FnMut(&str)) -> Result<(), String> {
    let asked = |name: &str| names.is_empty() || names.iter().any(|n| name.starts_with(n.as_str()));
    let mut offences = Vec::new();
    let mut tried = 0;
    let mut done = |name: &str, claims: &[(&str, Measure, bool)], found: &Found| {
        let (rows, wrong) = report(name, claims, found);
        show(&rows);
        offences.extend(wrong);
        tried += 1;
    };
    let described = |claims: &'static [Claim]| -> Vec<_> {
        claims.iter().map(|c| (c.over, c.measure, c.manual)).collect()
    };
    for single in SINGLES.iter().filter(|s| asked(s.name)) {
        let found = all(1 << 32, every, single.claims.len(), |bits, found| single.meet(bits as u32, found));
        done(single.name, &described(single.claims), &found);
    }
    for double in DOUBLES.iter().filter(|d| asked(d.name)) {
        let found = all(1 << 32, every, 1, |upper, found| double.meet(upper as u32, found));
        done(double.name, &[("all", Measure::Relative(double.bound), false)], &found);
    }
    for &(name, divide) in DIVISIONS.iter().filter(|d| asked(d.0)) {
        let found =
            all(DIVISION_TRIALS, every, 1, |number, found| meet_division(name, divide, number, found));
        done(name, &[("drawn pairs", Measure::Ulp(2.0), true)], &found);
    }
    if asked(ESTIMATED) {
        let found = all(1 << 24, every.min(ESTIMATES_EVERY), 1, meet_estimates);
        done(ESTIMATED, &[("all significands", Measure::Bits, false)], &found);
    }
    if tried == 0 {
        return Err(format!("no approximate instruction begins with {}", names.join(", ")));
    }
    if offences.is_empty() { Ok(()) } else { Err(offences.join("\n")) }
}

/// The subcommand.
pub(crate) fn prove(args: &[String]) -> Result<(), String> {
    let (mut every, mut names) = (1, Vec::new());
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg == "--every" {
            let number = rest.next().and_then(|n| n.parse().ok()).filter(|&n| n > 0);
            every = number.ok_or("--every takes a number above 0")?;
        } else {
            names.push(arg.clone());
        }
    }
    println!("| instruction | operands | who | bound | worst error | at | tried |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    proof(&names, every, |rows| print!("{rows}"))
}

#[cfg(test)]
mod tests {
    /// A prime, so that every pattern of low bits occurs with every exponent.
    const EVERY: u64 = 40_009;

    #[test]
    fn a_sample_of_all_operands_keeps_the_bounds() {
        super::proof(&[], EVERY, |_| ()).unwrap();
    }

    #[test]
    fn roots_whose_bits_are_all_ones_have_the_bits_of_the_definition() {
        let mut found = super::Found { worst: vec![super::Worst::default()], ..super::Found::default() };
        ((1 << 24) - 64..1 << 24).for_each(|number| super::meet_estimates(number, &mut found));
        assert_eq!(found.worst[0].share, 0.0);
    }

    #[test]
    fn a_function_that_is_off_is_found() {
        let mut found = super::Found { worst: vec![super::Worst::default(); 2], ..super::Found::default() };
        let off = super::Single {
            result: |a| f32::from_bits(ptx_sem::rcp_approx_f32(a).to_bits() + 2),
            ..super::SINGLES[0]
        };
        off.meet(1.5f32.to_bits(), &mut found);
        assert!(found.worst[0].share > 1.0 && found.worst[1].share > 1.0);
        off.meet(0, &mut found);
        assert_eq!(found.wrong_count, 2);
    }
}
