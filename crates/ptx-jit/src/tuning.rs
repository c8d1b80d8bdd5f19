//! Costs: every constant that decides whether an optimisation is worthwhile, by name, with the processor on
//! which it was measured.
//!
//! There are two kinds. [`Tuning`] has the constants that differ between micro-architectures; a
//! [`Target`](crate::target::Target) carries one. The constants below it are the same for all: bounds on the
//! size of code and the time to make it, and thresholds. "Measured" names the processor; "chosen" means that
//! no measurement decides between this value and its neighbours.
//!
//! Invariant: no value here changes results, only time and the size of code. Bounds that correctness needs
//! (for example against overflow) are in the code whose invariant they keep.

use crate::features::{Feature, Features, Level};

/// A design of a processor, as far as code is tuned for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MicroArchitecture {
    /// None in particular.
    Generic,
    /// AMD Zen 4: the EPYC 9004 and Ryzen 7000 series. Measured.
    Zen4,
    /// AMD Zen 5: the EPYC 9005 and Ryzen 9000 series. Measured.
    Zen5,
    /// Intel Skylake-SP, Cascade Lake and Cooper Lake. Not measured.
    SkylakeServer,
    /// Intel Ice Lake-SP. Not measured.
    IceLakeServer,
    /// Intel Sapphire Rapids, Emerald Rapids and Granite Rapids. Not measured value by value.
    SapphireRapids,
}

impl MicroArchitecture {
    /// All of them.
    pub(crate) const ALL: [MicroArchitecture; 6] = [
        MicroArchitecture::Generic,
        MicroArchitecture::Zen4,
        MicroArchitecture::Zen5,
        MicroArchitecture::SkylakeServer,
        MicroArchitecture::IceLakeServer,
        MicroArchitecture::SapphireRapids,
    ];

    /// The name on a command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            MicroArchitecture::Generic => "generic",
            MicroArchitecture::Zen4 => "zen4",
            MicroArchitecture::Zen5 => "zen5",
            MicroArchitecture::SkylakeServer => "skylake-server",
            MicroArchitecture::IceLakeServer => "icelake-server",
            MicroArchitecture::SapphireRapids => "sapphirerapids",
        }
    }

    /// LLVM's name at the level of AVX-512, which selects its tables of latencies.
    pub(crate) fn llvm_name(self) -> &'static str {
        match self {
            MicroArchitecture::Generic => "x86-64-v4",
            MicroArchitecture::Zen4 => "znver4",
            MicroArchitecture::Zen5 => "znver5",
            MicroArchitecture::SkylakeServer => "skylake-avx512",
            MicroArchitecture::IceLakeServer => "icelake-server",
            MicroArchitecture::SapphireRapids => "sapphirerapids",
        }
    }

    /// What the design has beyond AVX-512 F, BW, CD, DQ and VL.
    pub(crate) fn features(self) -> Features {
        use Feature::{
            Avx512Bf16, Avx512Bitalg, Avx512Fp16, Avx512Ifma, Avx512Vbmi, Avx512Vbmi2, Avx512Vnni,
            Avx512Vp2intersect, Avx512Vpopcntdq, AvxVnni, Gfni, Prfchw, Sse4a, Vaes, Vpclmulqdq,
        };
        const ICE_LAKE: [Feature; 10] = [
            Avx512Vnni,
            Avx512Vpopcntdq,
            Avx512Bitalg,
            Avx512Vbmi,
            Avx512Vbmi2,
            Avx512Ifma,
            Gfni,
            Vaes,
            Vpclmulqdq,
            Prfchw,
        ];
        const ICE: Features = Features::of(&ICE_LAKE);
        match self {
            MicroArchitecture::Generic => Features::default(),
            MicroArchitecture::SkylakeServer => Features::of(&[Prfchw]),
            MicroArchitecture::IceLakeServer => ICE,
            MicroArchitecture::SapphireRapids => ICE.and(&[Avx512Bf16, Avx512Fp16, AvxVnni]),
            MicroArchitecture::Zen4 => ICE.and(&[Avx512Bf16, Sse4a]),
            MicroArchitecture::Zen5 => ICE.and(&[Avx512Bf16, Sse4a, AvxVnni, Avx512Vp2intersect]),
        }
    }

    /// Its costs in code of that level.
    pub(crate) fn tuning(self, level: Level) -> Tuning {
        let zen4 = self == MicroArchitecture::Zen4 && level == Level::Avx512;
        let l1d_ways = match self {
            MicroArchitecture::Generic => None,
            MicroArchitecture::Zen4 | MicroArchitecture::SkylakeServer => Some(8),
            MicroArchitecture::Zen5
            | MicroArchitecture::IceLakeServer
            | MicroArchitecture::SapphireRapids => Some(12),
        };
        let estimates = matches!(
            self,
            MicroArchitecture::SkylakeServer
                | MicroArchitecture::IceLakeServer
                | MicroArchitecture::SapphireRapids
        );
        Tuning {
            micro_architecture: self,
            l1d_ways,
            l2_prefetch: zen4 || self == MicroArchitecture::SapphireRapids,
            near_prefetch: self == MicroArchitecture::SapphireRapids && level == Level::Avx512,
            double_pumped_512: zen4,
            root_by_estimate: estimates && level == Level::Avx512,
        }
    }
}

/// What differs between micro-architectures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tuning {
    /// The design that the values are of.
    pub(crate) micro_architecture: MicroArchitecture,
    /// Ways of the first-level data cache: how many lines whose addresses differ by a multiple of a page it
    /// holds. `None`: not known.
    pub(crate) l1d_ways: Option<u32>,
    /// Whether grid-stride loops prefetch into the second-level cache instead of the first. Measured: a sum
    /// of 64 MiB takes half the time on a Zen 4 with AVX-512, a third on a Sapphire Rapids with AVX-512 and
    /// half with AVX2; on a Zen 5 it takes a tenth less without.
    pub(crate) l2_prefetch: bool,
    /// Whether the next CTA's elements are prefetched also where they are so near that the processor's own
    /// prefetchers follow. The code between two CTAs keeps an out-of-order processor from loading far ahead.
    /// Measured on an Emerald Rapids with AVX-512: saxpy from memory takes 0.78 of the time, gelu 0.88,
    /// rotary 0.81; stencils, filters of pixels and a hash take as long with as without.
    pub(crate) near_prefetch: bool,
    /// Whether operations on 512 bits pass the execution units as two halves. Then a shuffle of two vectors
    /// takes as long as a load that crosses a line of the cache. Zen 4.
    pub(crate) double_pumped_512: bool,
    /// Whether a reciprocal square root is computed from the processor's estimate of 14 bits by fused
    /// multiply-adds instead of a square root and a division; the bits are the same. Intel's processors have
    /// one unit for both operations, which takes about 22 cycles for 16 lanes. Measured on a Sapphire Rapids;
    /// on a Zen 5 and a Zen 4 root and division are faster.
    pub(crate) root_by_estimate: bool,
}

impl Tuning {
    /// Whether prefetches for the next CTA go into the first-level cache. Measured: a Zen 4 has eight ways,
    /// and its stencils take half as long again with such prefetches; a Zen 5 has twelve, and its stencils
    /// take a third longer without. A cache that is not known counts as one of many ways.
    pub(crate) fn prefetches_next_cta_into_l1(self) -> bool {
        const FEW_WAYS: u32 = 8;
        self.l1d_ways.is_none_or(|ways| ways > FEW_WAYS)
    }
}

// Compilation as a whole.

/// The most blocks of a function that is compiled, copies included. Chosen: beyond, compiling takes seconds.
pub(crate) const MAX_BLOCKS: usize = 20_000;

/// The most operations of a function that is compiled, copies included. Chosen: beyond, compiling takes
/// seconds.
pub(crate) const MAX_OPS: usize = 200_000;

/// The same before registers are spilled, which are chosen by the moves of that function. Chosen: passes on
/// WIR alone take a second for as many.
pub(crate) const MAX_OPS_BEFORE_SPILLS: usize = 600_000;

/// From so many instructions of a function on, copies included, a function of single warps has one masked
/// copy of each block and no further versions. Chosen: kernels below become at most about 50,000 LLVM
/// instructions.
pub(crate) const LARGE_FUNCTION_MIN_INSTRUCTIONS: usize = 2_500;

/// The fewest divergent branches of such a function. Chosen: a hash of thousands of instructions has one, and
/// its full copy executes all warps but the last.
pub(crate) const LARGE_FUNCTION_MIN_BRANCHES: usize = 32;

/// The most registers that are loaded by the entries behind warp-synchronous instructions, for each
/// instruction of the function. Chosen: an entry costs a load and a phi for each, so they are at most two
/// thirds of the code.
pub(crate) const ENTRY_LOADS_PER_INSTRUCTION: usize = 1;

/// If the limit of [`ENTRY_LOADS_PER_INSTRUCTION`] is lower, this one. Chosen: small functions keep all
/// entries.
pub(crate) const ENTRY_LOADS_MIN: usize = 1_024;

/// From so many moves of varying registers at entries, barriers and side exits on, a function of masked
/// copies alone spills registers to the warp frame. Chosen: functions with fewer compile in less than a
/// second.
pub(crate) const SPILL_MIN_MOVES: usize = 8_192;

/// A register is spilled if it has more than so many moves for each load and store of the spilled register.
/// Chosen: a load or store in the lanes of a mask takes a few instructions, as the phi behind a move does.
pub(crate) const SPILL_MIN_MOVES_PER_ACCESS: usize = 2;

/// From so many registers on that the side exits of a function save, copies included, they share the code.
/// Chosen: functions below are small, and each exit stays one block.
pub(crate) const EXIT_SAVES_SHARED_MIN: usize = 4_096;

/// The registers that a block of such code saves. Chosen: with fewer, there are more branches than stores;
/// with more, exits share less.
pub(crate) const EXIT_SAVES_PER_BLOCK: usize = 16;

/// How many of the latest blocks of such code another exit may continue with. Chosen: exits are compared
/// with each.
pub(crate) const EXIT_SAVES_REMEMBERED: usize = 256;

/// After so many operations on chunks a block of LLVM IR ends: instruction selection works block by block, in
/// more than linear time. Chosen: loops of ordinary kernels stay whole.
pub(crate) const LLVM_BLOCK_MAX_OPS: u32 = 1024;

/// How many operations on a chunk the masked access of one lane counts as, towards [`LLVM_BLOCK_MAX_OPS`]:
/// LLVM compares all accesses of a block with each other. Chosen.
pub(crate) const MASKED_LANE_OPS: u32 = 4;

/// From so many LLVM instructions in a function on, LLVM's level 0 generates code: level 1 takes minutes for
/// some hundred thousand.
pub(crate) const UNOPTIMISED_MIN_INSTRUCTIONS: usize = 50_000;

/// The least number of additions in a chain that is split in two. Chosen: joining the halves costs half an
/// addition's latency.
pub(crate) const SPLIT_CHAIN_MIN_LINKS: usize = 6;

/// The most stack that native code may take, in bytes. Chosen: many times what kernels of libraries take.
pub(crate) const MAX_STACK_BYTES: u32 = 128 << 20;

/// So many CTAs run as coarse warps before a kernel whose coarse warps mostly diverge runs warp by warp.
/// Chosen.
pub(crate) const COARSE_WARP_TRIAL_CTAS: u32 = 16;

/// The most groups of CTAs that execute row by row.
pub(crate) const MOST_GROUPS: u32 = 64;

/// Groups of CTAs execute one after another while less than so many CTAs have finished for each group that
/// has taken a side exit: if one leaves, the CTAs of all groups that execute with it go on as single warps.
/// Chosen.
pub(crate) const GROUPS_MIN_CTAS_PER_EXIT: u32 = 32;

/// After so many CTAs in a row that code for whole CTAs has declined, single warps execute what a thread has
/// taken. Chosen: the first row of CTAs of a picture, whose upper border is declined, has fewer.
pub(crate) const COARSE_WARP_MAX_DECLINED_CTAS: u32 = 128;

// Fuel of loops.

/// Instructions that count as one unit of fuel where a CTA has no loop. Chosen: such a CTA is not free.
pub(crate) const OPS_PER_FUEL: u64 = 16;

/// Fuel for an iteration of a loop that waits for other threads, or may wait. Chosen.
pub(crate) const WAITING_LOOP_FUEL: i64 = 64;

/// Work of a loop's body for one unit of fuel: whether a launch is to stop is tested when the fuel of a call
/// is used up, which must not take long. Chosen: an iteration of an ordinary loop costs 1.
pub(crate) const WORK_PER_FUEL: u64 = 512;

/// The most fuel that an iteration costs: about as much as a call may spend.
pub(crate) const MAX_ITERATION_FUEL: i64 = 1 << 15;

// Construction and value numbering.

/// Rounds of the divergence analysis after which every branch counts as divergent. Chosen: kernels need two
/// to five.
pub(crate) const DIVERGENCE_MAX_ROUNDS: u32 = 12;

/// The most values that are looked at to find which comparison chose the lanes of a mask. Chosen: conditions
/// are a few comparisons.
pub(crate) const CHOOSING_MASK_MAX_VALUES: usize = 32;

/// Rounds of versioning on indices. Chosen: an index is clamped from both sides, which takes two, and may be
/// computed from another one.
pub(crate) const VERSION_MAX_ROUNDS: u32 = 4;

/// Rounds in which a coarse warp of several CTAs assumes indices. Chosen: a round follows each index that is
/// clamped from both sides, and each block on the way to the access.
pub(crate) const ASSUMED_INDICES_MAX_ROUNDS: u32 = 8;

/// The most operations of a function that versioning on indices copies. Chosen: the unrolled window of a
/// filter has a few hundred, and the copies of larger ones take longer to compile than they save.
pub(crate) const VERSION_MAX_OPS: usize = 1000;

/// The most operations behind a block with an index of a loop that is clamped before the loop, for a copy of
/// them. Chosen: a filter has some hundred, and their copy takes as long to compile as the rest of the
/// kernel.
pub(crate) const VERSION_REST_MAX_OPS: usize = 1500;

/// The most blocks of a region that is if-converted. Chosen: a larger region gains from a full copy that
/// other edges enter as well.
pub(crate) const IF_CONVERSION_MAX_BLOCKS: usize = 16;

/// How deep nested cycles of phis are searched for one value. Chosen: loops are not nested deeper in code
/// that matters.
pub(crate) const PHI_CYCLE_MAX_DEPTH: u32 = 40;

/// Rounds of phi elimination: a removed phi can make two others equal. Chosen: a second round rarely finds
/// anything.
pub(crate) const PHI_ELIM_MAX_ROUNDS: u32 = 8;

/// Rounds of value numbering. Chosen: real functions are stable after a few; values that are not stay apart.
pub(crate) const GVN_MAX_ROUNDS: u32 = 12;

/// Rounds of the range analysis after which a bound that still moves is given up. Chosen: chains of phis in
/// real kernels are stable by then.
pub(crate) const RANGE_WIDENING_ROUNDS: u32 = 6;

/// The fewest consecutive lanes of a segment of a shape. Chosen: shorter segments cost as many accesses as a
/// gather, and additions of addresses besides.
pub(crate) const SEGMENT_MIN_LANES: usize = 4;

// Coarse warps.

/// The most warps of a coarse warp. Chosen: beyond, code grows and little is gained.
pub(crate) const COARSE_WARP_MAX: u32 = 8;

/// The warps of a coarse warp whose values do not fit into the registers, if each loop has a barrier.
/// Measured (Zen 4) with a stencil of 25 points that keeps nine planes in registers, ratio to C++: one warp
/// 2.08, two 1.13, four 1.16, eight 1.25; in 256-bit code 2.07, 2.13, 2.61 and 2.69.
pub(crate) const COARSE_WARP_SPILLED: u32 = 2;

/// The most warps of a coarse warp that is a whole CTA and keeps nothing but constants across barriers: all
/// that a CTA may have.
pub(crate) const COARSE_WARP_MAX_WHOLE_CTA: u32 = 32;

/// The most vector registers for each chunk that a coarse warp needs across barriers and iterations for
/// values that are uniform in a warp. In a single warp they are scalars. Measured on an Emerald Rapids: sums
/// of `exp` over tiles of 128 x 32 points, with blocks of 32 x 8 threads, would need 13 in single and 25 in
/// double precision; coarse warps took 1.5 times as long, and five times as long to compile. Kernels that
/// gain need at most four.
pub(crate) const COARSE_WARP_MAX_WIDENED: u32 = 8;

/// The most LLVM instructions, by estimate, of a coarse warp's code. Chosen: kernels that gain much need less
/// than half of it.
pub(crate) const COARSE_WARP_MAX_CODE: usize = 8_000;

/// The same at the level of AVX-512, where a warp is two vectors, if loops stand between barriers. Chosen: a
/// CTA's reduction of rows across a few barriers needs nearly as much; straight-line code gains nothing from
/// coarse warps so long.
pub(crate) const COARSE_WARP_MAX_CODE_AVX512: usize = 18_000;

/// The same where the coarse warp is a whole CTA that never diverges: its code stands in place of that of
/// single warps. Chosen.
pub(crate) const COARSE_WARP_MAX_CODE_WHOLE_CTA: usize = 5 * COARSE_WARP_MAX_CODE;

/// The same at the level of AVX2, where nothing but constants lives across barriers: code of single warps is
/// much slower and no shorter. Chosen.
pub(crate) const COARSE_WARP_MAX_CODE_WHOLE_CTA_AVX2: usize = 10 * COARSE_WARP_MAX_CODE;

/// The same where the caller asks for a number of warps. Chosen.
pub(crate) const COARSE_WARP_MAX_CODE_ON_DEMAND: usize = 8 * COARSE_WARP_MAX_CODE;

/// The most LLVM instructions, by estimate, of code for single warps that is generated beside a coarse warp
/// that never diverges. Chosen.
pub(crate) const QUICK_WARP_MAX_CODE: usize = COARSE_WARP_MAX_CODE / 2;

/// Vector registers that values of a coarse warp may take across a barrier; the others hold what is computed
/// between barriers. Chosen.
pub(crate) fn coarse_warp_registers(level: Level) -> u32 {
    match level {
        Level::Avx512 => 20,
        Level::Avx2 | Level::Baseline => 10,
    }
}

/// The most vectors that iterations of a loop carry in a coarse warp that is a whole CTA. With AVX-512 there
/// are as many registers. Measured on a Zen 4: sums of rows (16) and a maximum with its place (32) gain; four
/// sums (64) take 2.2 times the time of single warps, and 13 times as long to compile. Chosen for AVX2.
pub(crate) fn coarse_warp_carried(level: Level) -> u32 {
    match level {
        Level::Avx512 => 32,
        Level::Avx2 | Level::Baseline => 64,
    }
}

/// The most instructions on the path of most warps of a kernel without barriers that is coarsened. Measured
/// on a Sapphire Rapids: streams and stencils of up to 60 instructions take 0.66 to 0.9 of the time; stencils
/// of 13 and 27 points and an option price (87, 120 and 93 instructions) gain nothing, and take up to twice
/// as long to compile.
pub(crate) const COARSE_WARP_MAX_PATH_INSTRUCTIONS: usize = 64;

/// One over the part of the time that a coarse warp must save in a kernel without barriers, by estimate.
/// More code is compiled, and estimates are rough. Measured on an Emerald Rapids, with loops: kernels that
/// save more than a third by estimate take 0.4 to 0.9 of the time; two that save a sixth (an attention and a
/// product of bytes) take 1.2 times the time.
pub(crate) const COARSE_WARP_MIN_GAIN: u64 = 4;

/// Instructions from the end of a warp to the begin of the next one. Counted in the code of a stream: slots,
/// thread indices, parameters.
pub(crate) const COARSE_WARP_TURN_COST: u64 = 50;

/// Instructions of a bounds check: the bounds are loaded and compared, and a branch is taken.
pub(crate) const COARSE_WARP_CHECK_COST: u64 = 6;

/// The most chunks of a coarse warp in a kernel with loops and without barriers. Measured on an Emerald
/// Rapids: with 16 chunks, kernels of the zoo take as long as with eight, and up to twice as long to compile.
pub(crate) const LOCKSTEP_MAX_CHUNKS: u32 = 8;

/// A coarse warp of several CTAs must save one instruction in so many, by estimate. Measured on an Emerald
/// Rapids, with blocks of 32 x 8: kernels that save half take 0.5 to 0.8 of the time; a median of nine and a
/// product of bytes that save a quarter gain nothing, and take three times as long to compile. On a Zen 3
/// with AVX2, where a coarse warp has two warps: stencils of five and seven points and a step of Maxwell's
/// equations that save 0.31 to 0.33 take 0.7 to 0.83 of the time; grey from pixels of three bytes, which
/// saves a quarter, takes 0.7 to 0.93.
pub(crate) fn merged_ctas_min_gain(level: Level) -> u64 {
    match level {
        Level::Avx512 => 3,
        Level::Avx2 | Level::Baseline => 5,
    }
}

/// So many groups of CTAs that execute as one must be in a row of the grid, if lanes at the border of a
/// picture do other work, or if CTAs are left at the end of the row; otherwise two. Measured in the same way:
/// with two, as in a box of 256 points, a stencil of seven points whose border is copied takes 1.2 times the
/// time; with one, of which some lanes are behind the end of the data, a maximum of four takes 1.5 times the
/// time.
pub(crate) const MERGED_CTAS_MIN_GROUPS: u32 = 4;

/// The most instructions of a path without loops, for such coarse warps. Measured in the same way: the edges
/// of a picture (69 instructions) take half of the time; stencils of 13 and 27 points (87 and 120) gain
/// nothing, and a step of the game of life (87) a fifth, for three times the time to compile.
pub(crate) const MERGED_CTAS_MAX_PATH_INSTRUCTIONS: usize = 80;

/// The same where coarse warps leave at the edges of a picture, so that there is no other code than that of
/// the path. Measured on a Zen 4: a convolution of 5 x 5 with clamped edges (200 instructions) takes 0.35 to
/// 0.65 of the time.
pub(crate) const MERGED_CTAS_MAX_ASSUMED_INSTRUCTIONS: usize = 400;

// Scalar code.

/// The fuel of a call of scalar code, which executes the threads of a CTA one after another. A call that
/// uses it up ends in the middle of a thread, and warps continue; so it is much. Chosen: about a tenth of a
/// second.
pub(crate) const SCALAR_FUEL: i64 = 1 << 25;

// Barrier slots.

/// The most bytes that a coarse warp keeps across barriers; a kernel that needs more runs warp by warp.
/// Chosen.
pub(crate) const BARRIER_SLOTS_MAX_BYTES: u32 = 1 << 17;

/// The largest product of blocks and slots for which redundant stores are looked for. Chosen: ordinary
/// kernels need a hundredth.
pub(crate) const BARRIER_SLOT_MAX_FACTS: usize = 1 << 18;

/// Rounds of moving stores of slots to loop headers: one move can make another possible. Chosen.
pub(crate) const BARRIER_SLOT_HOIST_ROUNDS: usize = 3;

// Chunk loops and warp strips.

/// The fewest operations of a chunk loop. Chosen: values that are live at its ends go through memory.
pub(crate) const CHUNK_LOOP_MIN_OPS: usize = 64;

/// The most operations of a chunk loop. Chosen: LLVM takes more than linear time for a block.
pub(crate) const CHUNK_LOOP_MAX_OPS: usize = 1024;

/// How many operations of a chunk loop must be independent on average. Chosen: two units, each with four
/// cycles of latency for an addition.
pub(crate) const CHUNK_LOOP_MIN_PARALLEL_OPS: usize = 8;

/// How many operations a chunk loop must have for each value that goes through memory. Chosen.
pub(crate) const CHUNK_LOOP_MIN_OPS_PER_SPILL: usize = 4;

/// The registers of a vector's lanes that an estimate of the moves between registers and memory leaves to
/// constants and intermediate results. Chosen.
pub(crate) const ORDER_SPARE_REGISTERS: usize = 4;

/// The loads that a store of a vector counts as. Measured on a Zen 4: a store of 64 bytes takes two cycles, a
/// load one, and an operand in memory costs no instruction.
pub(crate) const ORDER_STORE_COST: usize = 2;

/// The most masks that are put together from parts that warp strips leave in memory. Chosen: a section has a
/// few.
pub(crate) const WARP_STRIP_MAX_MASKS: u32 = 32;

/// The most rows of shared memory that the lanes of a chunk may access. Chosen.
pub(crate) const WARP_STRIP_MAX_ROWS: usize = 4;

/// The most operations that are executed under a mask that may be empty. Chosen: a branch needs the mask of
/// all warps.
pub(crate) const WARP_STRIP_MAX_SPECULATED_OPS: usize = 16;

/// How many warp strips share a block of LLVM IR, whose time grows with the square of a block. Chosen: a test
/// and a branch cost little then.
pub(crate) const WARP_STRIPS_PER_LLVM_BLOCK: usize = 4;

/// How deep the operands of a mask are followed where the mask is permuted. Chosen.
pub(crate) const MASK_PERMUTE_MAX_DEPTH: u32 = 6;

// Bounds checks and versions.

/// The fewest addresses for which a loop's checks move in front of it. Chosen: the computation in front of
/// the loop costs as much as a check.
pub(crate) const LOOP_PREDICATION_MIN_ADDRESSES: usize = 4;

/// How many definitions are followed to find how an address steps. Chosen: an element of a matrix has ten.
pub(crate) const LOOP_PREDICATION_MAX_DEFINITIONS: u32 = 64;

/// The most blocks of a function in which the readers of each value are listed. Without them there are no
/// endpoint tests, and no masks are sunk. Chosen: ordinary kernels have a tenth.
pub(crate) const READERS_MAX_BLOCKS: usize = 2_000;

/// The most comparisons, and operations that join them, of an endpoint test. Chosen: a point inside of a
/// three-dimensional grid and not on its border has half.
pub(crate) const ENDPOINT_TEST_MAX_COMPARISONS: usize = 24;

/// The most blocks of a function with versions for the leading active lanes. Chosen: a reduction tree has
/// one, or one for each step.
pub(crate) const PREFIX_VERSIONS_MAX: u32 = 6;

/// The most operations of a block with a speculative unmasked version. Chosen: code at the border of a
/// stencil has a tenth.
pub(crate) const UNMASKED_VERSION_MAX_OPS: usize = 200;

/// The most blocks of a function with a speculative unmasked version. Chosen.
pub(crate) const UNMASKED_VERSIONS_MAX: u32 = 6;

/// For how many chunks one branch tests whether there is a NaN. Chosen: their operands stay in registers
/// until then.
pub(crate) const NAN_TEST_CHUNKS: usize = 2;

/// The most vectors that a chain of double precision arithmetic reads from outside. They stay in registers
/// until its NaNs have been looked for.
pub(crate) const FLOAT_CHAIN_MAX_INPUTS: usize = 8;

/// The most instructions of a chain of double precision arithmetic. Chosen: the test is a small part then.
pub(crate) const FLOAT_CHAIN_MAX_OPS: usize = 64;

// Memory accesses.

/// So many lanes of a chunk, known when compiling, are accessed one by one where they are not contiguous.
/// Chosen: a gather costs an access of each lane, active or not.
pub(crate) const SCALAR_ACCESS_MAX_LANES: u32 = 2;

/// The most vectors that cover the elements of a chunk's lanes, where a permutation moves each to its lane.
/// Chosen: with more, as many accesses as lanes cost less.
pub(crate) const PERMUTED_ACCESS_MAX_VECTORS: u32 = 2;

/// The same of 16 lanes, whose permutations take elements of two vectors.
pub(crate) const PERMUTED_ACCESS_MAX_VECTORS_512: u32 = 4;

/// The same of loads of 8 lanes. On Zen 3, loads of every third word or byte from three vectors take 0.62 to
/// 0.85 of the time of eight loads; every fourth from four vectors takes 0.8 (16 bits) to 1.33 (8 bits).
pub(crate) const PERMUTED_LOAD_MAX_VECTORS_256: u32 = 3;

/// The most vectors that covering loads are taken from. Chosen.
pub(crate) const COVERING_LOAD_MAX_VECTORS: u32 = 4;

/// The fewest rows of an interleaved group. Chosen: two rows of two chunks are four loads, or three and two
/// shuffles.
pub(crate) const INTERLEAVED_GROUP_MIN_ROWS: usize = 2;

/// The most bits of a lane that one load of a coalesced gather takes.
pub(crate) const WIDE_GATHER_MAX_BITS: u32 = 128;

/// The fewest bits of a lane that a gather instruction takes.
pub(crate) const WIDE_GATHER_MIN_BITS: u32 = 32;

/// How many chunks one test for equal addresses of atomics covers. Chosen: as many as cost no more than a
/// branch.
pub(crate) const SAME_ADDRESS_TEST_CHUNKS: usize = 2;

// Prefetches.

/// Bytes of a cache line on the processors that code is tuned for; elsewhere some lines are prefetched twice,
/// or not at all.
pub(crate) const CACHE_LINE_BYTES: u32 = 64;

/// Strides below this are followed by the processor's own prefetchers: it is the size of a page.
pub(crate) const PREFETCHER_REACH_BYTES: u64 = 4096;

/// How far ahead the prefetch for the next CTA goes where it fills the second-level cache: as many warps at
/// least. Measured on a Zen 4: half as far, stencils take a tenth to a third longer; twice as far, no less.
pub(crate) const NEXT_CTA_PREFETCH_WARPS: u32 = 16;

/// The same, as many CTAs at least. Measured on a Zen 4.
pub(crate) const NEXT_CTA_PREFETCH_CTAS: u32 = 2;

/// From so many bytes of a CTA's part of an iteration on, a grid-stride loop prefetches the next CTA's part
/// into the first-level cache alone. Measured on a Zen 5: sums of words read as much; histograms of bytes
/// read a quarter, and take a twentieth longer so.
pub(crate) const GRID_STRIDE_LONG_BYTES: u32 = 1024;

/// How many iterations ahead a grid-stride loop prefetches long parts into the second-level cache. Measured
/// on a Zen 4: two to four take equally long, one and six or eight up to a tenth longer.
pub(crate) const GRID_STRIDE_ITERATIONS_AHEAD: u32 = 4;

/// The fewest operations of a block that takes deferred prefetches. Chosen.
pub(crate) const DEFERRED_PREFETCH_MIN_OPS: usize = 32;

/// The most lines of deferred prefetches for one cache. Chosen: their addresses are stored and loaded.
pub(crate) const DEFERRED_PREFETCH_MAX_LINES: u32 = 32;

/// The most operations of a block that takes deferred prefetches between its operations. Such code is one
/// block of LLVM IR: what LLVM moves from a block to the next would leave the prefetches behind.
pub(crate) const DEFERRED_PREFETCH_MAX_OPS: u32 = 4 * LLVM_BLOCK_MAX_OPS;

/// How many vector operations a block must have for each line of a deferred prefetch. Chosen.
pub(crate) const DEFERRED_PREFETCH_OPS_PER_LINE: usize = 16;

/// Distances beyond this are not prefetched. Chosen.
pub(crate) const PREFETCH_MAX_BYTES: i64 = 1 << 26;

/// The most definitions that scalar evolution visits to find the step of a loop's value. Chosen: loops need
/// less than ten.
pub(crate) const SCALAR_EVOLUTION_MAX_DEFINITIONS: u32 = 100;

/// The most loops that scalar evolution follows. Chosen.
pub(crate) const SCALAR_EVOLUTION_MAX_LOOPS: usize = 8;

/// What it costs to extend or truncate the lanes of a narrow value, in bytes of each lane. Counted in the
/// code for AVX-512: two instructions for each 16 lanes.
pub(crate) const NARROW_LANES_CONVERT_COST: i64 = 4;

/// The least that a group of operations must save to be computed in narrow lanes, in bytes of each lane.
/// Chosen: less than that is lost in estimates.
pub(crate) const NARROW_LANES_MIN_GAIN: i64 = 8;
