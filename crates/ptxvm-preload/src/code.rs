//! Jumps as machine code, and the choice of a place for each.
//!
//! A redirected function never runs again, so its bytes behind the jump are free. A function that is too
//! short for a jump to any address gets a short jump to free bytes of another function.
//!
//! Invariant: bytes are planned only inside the redirected functions and in the padding behind them, each
//! byte once.

/// A processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Processor {
    X86_64,
    Aarch64,
}

impl Processor {
    /// The processor of this host, if this module supports it.
    pub(crate) fn host() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(Self::X86_64)
        } else if cfg!(all(target_arch = "aarch64", target_endian = "little")) {
            Some(Self::Aarch64)
        } else {
            None
        }
    }

    /// Whether a byte occurs between functions: part of a no-op, a trap, or zero.
    pub(crate) fn is_padding(self, byte: u8) -> bool {
        match self {
            Self::X86_64 => {
                [0x00, 0x0f, 0x1f, 0x2e, 0x40, 0x44, 0x66, 0x80, 0x84, 0x90, 0xcc].contains(&byte)
            }
            Self::Aarch64 => [0x00, 0x1f, 0x20, 0x03, 0xd5].contains(&byte),
        }
    }

    /// Machine code that jumps to a target from any address that is aligned for instructions.
    fn far(self, target: Target) -> Vec<u8> {
        let Target { function, argument } = target;
        let mut code = Vec::new();
        match (self, argument) {
            (Self::X86_64, argument) => {
                if let Some(argument) = argument {
                    // mov rdi, argument
                    code.extend([0x48, 0xbf]);
                    code.extend(argument.to_le_bytes());
                }
                // jmp [rip]
                code.extend([0xff, 0x25, 0, 0, 0, 0]);
            }
            (Self::Aarch64, None) => {
                // ldr x16, function; br x16
                code.extend([0x5800_0050_u32, 0xd61f_0200].map(u32::to_le_bytes).concat());
            }
            (Self::Aarch64, Some(argument)) => {
                // ldr x0, argument; ldr x16, function; br x16; nop
                let words = [0x5800_0080_u32, 0x5800_00b0, 0xd61f_0200, 0xd503_201f];
                code.extend(words.map(u32::to_le_bytes).concat());
                code.extend(argument.to_le_bytes());
            }
        }
        code.extend(function.to_le_bytes());
        code
    }

    /// Jumps to a near address, shorter ones first, with the bytes that each takes and its reach.
    fn near(self) -> &'static [Near] {
        match self {
            Self::X86_64 => &[Near { bytes: 2, reach: 127 }, Near { bytes: 5, reach: i32::MAX as u64 }],
            Self::Aarch64 => &[Near { bytes: 4, reach: (1 << 27) - 4 }],
        }
    }

    fn near_code(self, near: Near, from: u64, to: u64) -> Vec<u8> {
        let distance = to.wrapping_sub(from) as i64;
        match (self, near.bytes) {
            (Self::X86_64, 2) => vec![0xeb, (distance - 2) as i8 as u8],
            (Self::X86_64, _) => {
                let mut code = vec![0xe9];
                code.extend(((distance - 5) as i32).to_le_bytes());
                code
            }
            (Self::Aarch64, _) => {
                let word = 0x1400_0000 | ((distance / 4) as u32 & 0x03ff_ffff);
                word.to_le_bytes().to_vec()
            }
        }
    }

    /// The alignment of instructions.
    fn align(self) -> u64 {
        match self {
            Self::X86_64 => 1,
            Self::Aarch64 => 4,
        }
    }
}

/// A jump to a near address.
#[derive(Clone, Copy, Debug)]
struct Near {
    bytes: u64,
    /// Less than the architecture's reach by a few bytes, so it is valid from the jump's first and last byte.
    reach: u64,
}

/// Where a redirected function continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    /// Address of the function.
    pub(crate) function: u64,
    /// The first argument that the function gets instead of the caller's.
    pub(crate) argument: Option<u64>,
}

/// A function to redirect.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) address: u64,
    /// Bytes from its first to its last, with the padding behind it.
    pub(crate) room: u64,
    pub(crate) target: Target,
}

/// Bytes to write at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Patch {
    pub(crate) address: u64,
    pub(crate) code: Vec<u8>,
}

/// Free bytes.
struct Spare {
    address: u64,
    bytes: u64,
}

/// The patches that redirect the sites, and the indices of the sites for which there is no room.
pub(crate) fn plan(processor: Processor, sites: &[Site]) -> (Vec<Patch>, Vec<usize>) {
    let (mut patches, mut spares, mut short) = (Vec::new(), Vec::new(), Vec::new());
    for (index, site) in sites.iter().enumerate() {
        let code = processor.far(site.target);
        let bytes = code.len() as u64;
        if site.room < bytes {
            short.push(index);
            continue;
        }
        spares.push(Spare { address: site.address + bytes, bytes: site.room - bytes });
        patches.push(Patch { address: site.address, code });
    }
    short.retain(|index| {
        let site = &sites[*index];
        let jump = processor.near().iter().rev().find(|near| near.bytes <= site.room);
        let chain = jump.and_then(|near| chain(processor, &mut spares, site, *near));
        let found = chain.is_some();
        patches.extend(chain.into_iter().flatten());
        !found
    });
    (patches, short)
}

/// Redirects a short function by a jump of the kind `near` to spare bytes, directly or over a second jump.
fn chain(processor: Processor, spares: &mut [Spare], site: &Site, near: Near) -> Option<Vec<Patch>> {
    let far = processor.far(site.target);
    let first = |to: u64| Patch { address: site.address, code: processor.near_code(near, site.address, to) };
    if let Some(place) = take(processor, spares, site.address, near.reach, far.len() as u64) {
        return Some(vec![first(place), Patch { address: place, code: far }]);
    }
    let longest = *processor.near().last()?;
    let between = take(processor, spares, site.address, near.reach, longest.bytes)?;
    let place = take(processor, spares, between, longest.reach, far.len() as u64)?;
    let second = Patch { address: between, code: processor.near_code(longest, between, place) };
    Some(vec![first(between), second, Patch { address: place, code: far }])
}

/// Takes `bytes` spare bytes within reach of an address.
fn take(processor: Processor, spares: &mut [Spare], from: u64, reach: u64, bytes: u64) -> Option<u64> {
    for spare in spares {
        let start = spare.address.next_multiple_of(processor.align());
        let wanted = start - spare.address + bytes;
        if wanted <= spare.bytes && start.abs_diff(from) < reach {
            spare.address += wanted;
            spare.bytes -= wanted;
            return Some(start);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(address: u64, room: u64) -> Site {
        Site { address, room, target: Target { function: 0x1122_3344_5566_7788, argument: None } }
    }

    fn text(code: &[u8]) -> String {
        code.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_function_with_room_jumps_to_any_address() {
        let (patches, short) = plan(Processor::X86_64, &[site(0x1000, 14)]);
        assert!(short.is_empty());
        assert_eq!(text(&patches[0].code), "ff25000000008877665544332211");
        let (patches, _) = plan(Processor::Aarch64, &[site(0x1000, 16)]);
        assert_eq!(text(&patches[0].code), "5000005800021fd68877665544332211");
    }

    #[test]
    fn an_argument_is_loaded_first() {
        let mut named = site(0x1000, 32);
        named.target.argument = Some(0xaabb);
        let (patches, _) = plan(Processor::X86_64, &[named.clone()]);
        assert_eq!(text(&patches[0].code), "48bfbbaa000000000000ff25000000008877665544332211");
        let (patches, _) = plan(Processor::Aarch64, &[named]);
        let code = "80000058b000005800021fd61f2003d5bbaa0000000000008877665544332211";
        assert_eq!(text(&patches[0].code), code);
    }

    #[test]
    fn a_short_function_goes_on_in_one_that_never_runs_again() {
        let (patches, short) = plan(Processor::X86_64, &[site(0x1000, 5), site(0x2000, 40)]);
        assert!(short.is_empty());
        // 0x200e, behind the jump of the long one: 0x200e - 0x1005.
        let at = |address: u64| patches.iter().find(|patch| patch.address == address).unwrap();
        assert_eq!(text(&at(0x1000).code), "e909100000");
        assert_eq!(text(&at(0x200e).code), "ff25000000008877665544332211");
        let (patches, short) = plan(Processor::Aarch64, &[site(0x2100, 8), site(0x2000, 48)]);
        assert!(short.is_empty());
        let at = |address: u64| patches.iter().find(|patch| patch.address == address).unwrap();
        // Back by 0xf0 bytes.
        assert_eq!(text(&at(0x2100).code), "c4ffff17");
        assert_eq!(at(0x2010).code.len(), 16);
    }

    #[test]
    fn a_shorter_one_takes_a_step_between() {
        let sites = [site(0x1000, 3), site(0x1010, 20), site(0x9000, 64)];
        let (patches, short) = plan(Processor::X86_64, &sites);
        assert!(short.is_empty());
        let at = |address: u64| patches.iter().find(|patch| patch.address == address).unwrap();
        assert_eq!(text(&at(0x1000).code), "eb1c");
        assert_eq!(text(&at(0x101e).code), "e9eb7f0000");
        assert_eq!(at(0x900e).code.len(), 14);
    }

    #[test]
    fn what_has_no_room_is_named_and_nothing_overlaps() {
        let sites = [site(0x1000, 1), site(0x1010, 4), site(0x2000, 14), site(0x1008, 2), site(0x1020, 60)];
        let (mut patches, short) = plan(Processor::X86_64, &sites);
        assert_eq!(short, [0]);
        patches.sort_by_key(|patch| patch.address);
        for pair in patches.windows(2) {
            assert!(pair[0].address + pair[0].code.len() as u64 <= pair[1].address, "{pair:x?}");
        }
    }
}
