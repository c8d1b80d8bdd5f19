//! The attributes of a device: `CUdevice_attribute`.
//!
//! The values are those of a data-center GPU of the compute capability, from the public tables of the CUDA
//! programming guide, except for properties of the host (unified addressing, host memory that kernels can
//! access). Missing features (graphics interoperation, multicast, ...) are 0.
//!
//! Invariant: every attribute of the public header has a value; other numbers have none.

/// Limits that depend on the compute capability.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Multiprocessors. Chosen: the count of the first data-centre GPU of that capability.
    pub(crate) multiprocessors: i32,
    /// Threads of a multiprocessor.
    pub(crate) threads: i32,
    /// CTAs of a multiprocessor.
    pub(crate) blocks: i32,
    /// Shared memory of a multiprocessor in bytes.
    pub(crate) shared: i32,
    /// Most shared memory of a CTA with `cuFuncSetAttribute`.
    pub(crate) shared_optin: i32,
    /// Shared memory that the system reserves for each CTA.
    pub(crate) shared_reserved: i32,
    /// 32-bit registers of a multiprocessor.
    pub(crate) registers: i32,
}

/// Most shared memory of a CTA by default.
pub(crate) const SHARED: i32 = 48 << 10;

impl Limits {
    /// The limits of a compute capability (80 for 8.0).
    pub(crate) fn of(capability: i32) -> Self {
        const KIB: i32 = 1024;
        let reserved = if capability >= 80 { KIB } else { 0 };
        let (multiprocessors, threads, blocks, shared, shared_optin) = match capability {
            ..=36 => (15, 2048, 16, 48 * KIB, 48 * KIB),
            37 => (13, 2048, 16, 112 * KIB, 48 * KIB),
            38..=50 => (16, 2048, 32, 64 * KIB, 48 * KIB),
            51..=59 => (24, 2048, 32, 96 * KIB, 48 * KIB),
            60 => (56, 2048, 32, 64 * KIB, 48 * KIB),
            61..=69 => (30, 2048, 32, 96 * KIB, 48 * KIB),
            70..=74 => (80, 2048, 32, 96 * KIB, 96 * KIB),
            75..=79 => (40, 1024, 16, 64 * KIB, 64 * KIB),
            80 => (108, 2048, 32, 164 * KIB, 163 * KIB),
            86 => (84, 1536, 16, 100 * KIB, 99 * KIB),
            87 => (16, 1536, 16, 164 * KIB, 163 * KIB),
            81..=89 => (128, 1536, 24, 100 * KIB, 99 * KIB),
            90..=99 => (132, 2048, 32, 228 * KIB, 227 * KIB),
            100..=119 => (148, 2048, 32, 228 * KIB, 227 * KIB),
            120.. => (170, 1536, 24, 100 * KIB, 99 * KIB),
        };
        Self {
            multiprocessors,
            threads,
            blocks,
            shared,
            shared_optin,
            shared_reserved: reserved,
            registers: 65536,
        }
    }
}

/// The value of an attribute; `None` for an unknown number.
pub(crate) fn attribute(number: i32, capability: i32) -> Option<i32> {
    let limits = Limits::of(capability);
    let since = |first: i32| i32::from(capability >= first);
    Some(match number {
        1..=2 => 1024,  // threads of a CTA, and its x
        3 => 1024,      // y
        4 => 64,        // z
        5 => i32::MAX,  // grid x
        6 | 7 => 65535, // grid y, z
        8 => SHARED,
        9 => 64 << 10,   // constant memory
        10 => 32,        // warp
        11 => i32::MAX,  // pitch
        12 => 65536,     // registers of a CTA
        13 => 1_410_000, // clock, kHz
        14 => 512,       // texture alignment
        15 => 1,         // copies overlap kernels
        16 => limits.multiprocessors,
        17 => 0,       // no time limit
        18 => 0,       // not integrated
        19 => 1,       // host memory can be mapped
        20 => 0,       // compute mode: default
        21 => 131_072, // 1d texture
        22 => 131_072, // 2d texture
        23 => 65_536,
        24..=26 => 16_384, // 3d texture
        27 | 28 => 32_768, // layered 2d texture
        29 => 2048,
        30 => 512,       // surface alignment
        31 => 1,         // kernels run beside each other
        32 => 0,         // no ECC
        33 => 1,         // PCI bus
        34 => 0,         // PCI device
        35 => 0,         // no TCC
        36 => 1_215_000, // memory clock, kHz
        37 => 5120,      // memory bus, bits
        38 => 40 << 20,  // L2
        39 => limits.threads,
        40 => 2,      // copy engines
        41 => 1,      // unified addressing
        42 => 32_768, // layered 1d texture
        43 => 2048,
        44 => 1, // gather
        45 | 46 => 32_768,
        47..=49 => 16_384, // alternate 3d texture
        50 => 0,           // PCI domain
        51 => 32,          // texture pitch alignment
        52 => 32_768,      // cubemap
        53 => 32_768,
        54 => 2046,
        55 => 32_768,  // 1d surface
        56 => 131_072, // 2d surface
        57 => 65_536,
        58..=60 => 16_384, // 3d surface
        61 => 32_768,      // layered 1d surface
        62 => 2048,
        63 | 64 => 32_768, // layered 2d surface
        65 => 2048,
        66 | 67 => 32_768, // cubemap surface
        68 => 2046,
        69 => 268_435_456, // 1d linear texture
        70 => 131_072,     // 2d linear texture
        71 => 65_000,
        72 => 2_097_120,
        73 | 74 => 32_768, // 2d mipmap
        75 => capability / 10,
        76 => capability % 10,
        77 => 32_768, // 1d mipmap
        78..=80 => 1, // stream priorities, caching in L1
        81 => limits.shared,
        82 => limits.registers,
        83 => 1, // managed memory
        84 => 0, // no multi-GPU board
        85 => 0,
        86 => 1,         // host and device share atomic operations
        87 => 2,         // single to double precision
        88 => 0,         // pageable memory is not reached
        89 => since(60), // concurrent access to managed memory
        90 => since(60), // pre-emption
        91 => 1,         // registered memory has the host's addresses
        92..=94 => 0,    // first version of memory operations in streams
        95 => since(60), // cooperative launch
        96 => 0,         // cooperative launch on several devices
        97 => limits.shared_optin,
        98 => 0,
        99 => 1, // host memory can be registered
        100 => 0,
        101 => 1, // the host reaches managed memory directly
        102 => 1, // virtual memory management
        103 => 1, // memory as a file descriptor
        104 | 105 => 0,
        106 => limits.blocks,
        107..=109 => 0,
        110 => 0,
        111 => limits.shared_reserved,
        112 => 0,
        113 => 1, // read-only registered memory
        114 => 0,
        115 => 1, // memory pools
        116..=118 => 0,
        119 => 1, // pools are shared by file descriptors
        120 => 0, // no clusters
        121 => 0,
        122 | 123 => 1, // memory operations in streams
        124 => 0,
        125 => 1, // interprocess events
        126 => 1, // one memory synchronisation domain
        127..=129 => 0,
        130 => 0, // no NUMA
        131 => -1,
        132 | 133 => 0,
        134 => 0, // NUMA node of the host
        135..=141 => 0,
        142..=158 => 0,
        161 => 0,
        _ => return None,
    })
}

/// The 32-bit numbers of the public `CUdevprop`, in its order.
pub(crate) fn properties(capability: i32) -> [i32; 14] {
    let of = |number| attribute(number, capability).unwrap_or(0);
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14].map(of)
}

#[cfg(test)]
mod tests {
    use super::{Limits, attribute};

    #[test]
    fn every_attribute_of_the_header_has_a_value() {
        for number in (1..=158).chain([161]) {
            assert!(attribute(number, 80).is_some(), "{number}");
        }
        assert_eq!(attribute(0, 80), None);
        assert_eq!(attribute(162, 80), None);
        assert_eq!(attribute(-1, 80), None);
    }

    #[test]
    fn limits_are_those_of_the_capability() {
        // From the table "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide.
        assert_eq!(Limits::of(75).threads, 1024);
        assert_eq!(Limits::of(75).shared, 64 << 10);
        assert_eq!(Limits::of(80).shared_optin, 163 << 10);
        assert_eq!(Limits::of(86).blocks, 16);
        assert_eq!(Limits::of(89).threads, 1536);
        assert_eq!(Limits::of(90).shared, 228 << 10);
        assert_eq!(attribute(75, 75), Some(7));
        assert_eq!(attribute(76, 75), Some(5));
    }
}
