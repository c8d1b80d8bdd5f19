//! Lifts for hosts with 256-bit vectors and fused multiply-add.
//!
//! A program for x86-64 may assume only 128-bit vectors and no fused multiply-add, but nearly every processor
//! has more. These are the lifts of [`crate::lift`], compiled again for AVX2 and FMA. They are methods of
//! [`Wide`], which exists only if the processor has both features, and they are chosen when a step is bound.
//!
//! Invariant: results are bit-identical to those of [`crate::lift`]. A fused multiply-add is one IEEE
//! operation, in the processor and in the C library; nothing else depends on the vector width.
//!
//! They are worthwhile for fused multiply-add, which otherwise is a call per lane, and for long sequences on
//! all lanes.

use crate::bound::{Exec, StepFn, Stepped};
use crate::lanes::{LANES, Lane, lanes_of};
use crate::lift::{Inputs, One, Three, Two, Value, step1, step2, step3};

/// Proof that the processor has AVX2 and FMA.
#[derive(Clone, Copy, Debug)]
pub struct Wide(());

impl Wide {
    /// Detects the features of this processor.
    #[must_use]
    pub fn of_host() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            return Some(Self(()));
        }
        None
    }

    /// Runs `f`, compiled for AVX2 and FMA where it is inlined.
    #[inline(always)]
    fn run<R>(self, f: impl FnOnce() -> R) -> R {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn compiled<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        #[cfg(target_arch = "x86_64")]
        {
            // SAFETY: the processor has AVX2 and FMA, because only `of_host` makes a `Wide`, after it has
            // checked them.
            unsafe { compiled(f) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        f()
    }

    /// `d = f(a)` in every lane.
    pub fn lift1<A: Value, D: Value>(
        self,
        o: One<A::Slot, D::Slot>,
        f: impl Fn(A) -> D + Copy + Send + Sync + 'static,
    ) -> StepFn {
        Box::new(move |exec| self.run(|| step1(&o, exec, f)))
    }

    /// `d = f(a, b)` in every lane.
    pub fn lift2<A: Value, B: Value, D: Value>(
        self,
        o: Two<A::Slot, B::Slot, D::Slot>,
        f: impl Fn(A, B) -> D + Copy + Send + Sync + 'static,
    ) -> StepFn {
        Box::new(move |exec| self.run(|| step2(&o, exec, f)))
    }

    /// `d = f(a, b, c)` in every lane.
    pub fn lift3<A: Value, B: Value, C: Value, D: Value>(
        self,
        o: Three<A::Slot, B::Slot, C::Slot, D::Slot>,
        f: impl Fn(A, B, C) -> D + Copy + Send + Sync + 'static,
    ) -> StepFn {
        Box::new(move |exec| self.run(|| step3(&o, exec, f)))
    }

    /// `d = f(a)` in every lane. First computes all lanes with `quick`, which also returns whether its result
    /// is certain. If an active lane is uncertain, the active lanes are computed with `f`. Certain results
    /// are equal to those of `f`.
    pub fn lift1_quick<A: Value, D: Value>(
        self,
        o: One<A::Slot, D::Slot>,
        quick: impl Fn(A) -> (D, bool) + Copy + Send + Sync + 'static,
        f: impl Fn(A) -> D + Copy + Send + Sync + 'static,
    ) -> StepFn {
        Box::new(move |exec| self.run(|| step1_quick(&o, exec, quick, f)))
    }
}

#[inline(always)]
fn step1_quick<A: Value, D: Value>(
    o: &One<A::Slot, D::Slot>,
    exec: &mut Exec<'_>,
    quick: impl Fn(A) -> (D, bool) + Copy,
    f: impl Fn(A) -> D + Copy,
) -> Stepped {
    let mut scratch = None;
    let a = o.a.read(Inputs::of(exec), &mut scratch);
    let mut out = Lane([Default::default(); LANES]);
    let mut doubts = 0u32;
    for lane in 0..LANES {
        let (value, certain) = quick(A::of(a.0[lane]));
        out.0[lane] = value.slot();
        doubts |= u32::from(!certain);
    }
    if doubts != 0 {
        for lane in lanes_of(exec.mask) {
            out.0[lane] = f(A::of(a.0[lane])).slot();
        }
    }
    o.d.write(exec.regs, exec.mask, &out);
    Ok(())
}
