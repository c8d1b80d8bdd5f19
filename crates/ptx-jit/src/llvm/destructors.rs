//! Destructors of LLVM's tables, at the end of the process.
//!
//! LLVM allocates some tables when it first needs them, and then registers their destructors with
//! `__cxa_atexit`. `exit` calls destructors in the reverse order, so it would free these tables before it
//! calls any function of ours that was registered earlier, while other threads use them. Therefore
//! [`run_first`] lets LLVM call a function of this file instead. It registers a destructor that first calls
//! the given function, which stops the threads in LLVM, and then LLVM's.
//!
//! LLVM calls `__cxa_atexit` by an address in its relocated data. The library's dynamic section tells where,
//! and the address is overwritten.
//!
//! Invariant: LLVM's destructors run as often, and in the same order, as they would without this file. Only
//! memory in loaded parts of LLVM's library is read or written.
//!
//! It does not stop threads: [`exit`](super::exit) does.

#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub(super) use imp::run_first;

/// Not supported on this system.
#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub(super) fn run_first(_address: usize, _action: fn()) -> bool {
    false
}

#[cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod imp {
    use libc::{Elf64_Phdr, Elf64_Sym, c_int, c_void};
    use std::ffi::CStr;
    use std::mem::size_of;
    use std::ops::Range;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    type Destructor = unsafe extern "C" fn(*mut c_void);

    // SAFETY: the function of the C++ binary interface, with its signature.
    unsafe extern "C" {
        fn __cxa_atexit(function: Destructor, argument: *mut c_void, library: *mut c_void) -> c_int;
    }

    /// What runs before the destructors.
    static ACTION: OnceLock<fn()> = OnceLock::new();

    fn act() {
        if let Some(action) = ACTION.get() {
            action();
        }
    }

    /// A destructor of LLVM's and the object that it destroys.
    struct Registered {
        function: Destructor,
        argument: *mut c_void,
    }

    /// What LLVM calls instead of `__cxa_atexit`.
    ///
    /// # Safety
    /// As for `__cxa_atexit`: `function` may be called once with `argument` when the process ends or when
    /// `library` is unloaded.
    unsafe extern "C" fn register(
        function: Destructor,
        argument: *mut c_void,
        library: *mut c_void,
    ) -> c_int {
        let registered = Box::into_raw(Box::new(Registered { function, argument }));
        // SAFETY: `destroy` takes a box of this type, and it is called once.
        unsafe { __cxa_atexit(destroy, registered.cast(), library) }
    }

    /// Calls the action, and then a destructor of LLVM's.
    ///
    /// # Safety
    /// `registered` comes from [`register`], and this is the only call with it.
    unsafe extern "C" fn destroy(registered: *mut c_void) {
        act();
        // SAFETY: as the caller says, it is a box that nothing else owns.
        let registered = unsafe { Box::from_raw(registered.cast::<Registered>()) };
        // SAFETY: LLVM has asked for this call.
        unsafe { (registered.function)(registered.argument) };
    }

    extern "C" fn act_alone(_: *mut c_void) {
        act();
    }

    /// Lets destructors of the library that contains an address run after `action`, on the thread that ends
    /// the process: those that were registered already, and those that will be. `false` if this cannot be
    /// had, so that the order of destructors is the usual one. It must be called once.
    pub(in super::super) fn run_first(address: usize, action: fn()) -> bool {
        let Some(library) = Library::containing(address) else { return false };
        let slots = library.slots(c"__cxa_atexit");
        if slots.is_empty() || !stay_loaded() || ACTION.set(action).is_err() {
            return false;
        }
        // SAFETY: `act_alone` takes any argument and stays loaded.
        let registered = unsafe { __cxa_atexit(act_alone, std::ptr::null_mut(), std::ptr::null_mut()) };
        registered == 0 && slots.iter().all(|slot| library.write(*slot, register as *const () as usize))
    }

    /// Keeps the code of this file loaded until the process ends, since LLVM has its address.
    fn stay_loaded() -> bool {
        let own = register as *const c_void;
        // SAFETY: all bits zero are a value of the structure.
        let mut about: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: it accepts any address and fills the structure.
        if unsafe { libc::dladdr(own, &mut about) } == 0 || about.dli_fname.is_null() {
            return false;
        }
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: the name is a string of the loader's. The flags load nothing, so no constructor runs. The
        // name of a program is not that of a loaded library; a program is never unloaded.
        let _unless_program = unsafe { libc::dlopen(about.dli_fname, flags) };
        true
    }

    /// `DT_...`: what an entry of the dynamic section describes.
    const STRINGS: u64 = 5;
    const SYMBOLS: u64 = 6;
    const RELOCATIONS: u64 = 7;
    const RELOCATION_BYTES: u64 = 8;
    const CALL_RELOCATION_BYTES: u64 = 2;
    const CALL_RELOCATIONS: u64 = 23;
    const RELATIVE_RELOCATIONS: u64 = 0x6fff_fff9;

    /// `R_..._GLOB_DAT` and `R_..._JUMP_SLOT`: the relocated word is the address of the symbol.
    #[cfg(target_arch = "x86_64")]
    const ADDRESS_OF_SYMBOL: [u64; 2] = [6, 7];
    #[cfg(target_arch = "aarch64")]
    const ADDRESS_OF_SYMBOL: [u64; 2] = [1025, 1026];

    /// `Elf64_Dyn`.
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Entry {
        tag: u64,
        value: u64,
    }

    /// `Elf64_Rela`.
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Relocation {
        offset: u64,
        info: u64,
        _addend: i64,
    }

    /// A loaded library.
    struct Library {
        /// The address to which the addresses in its file are relative.
        base: usize,
        /// Its readable parts in memory.
        parts: Vec<Range<usize>>,
        /// Data that is read-only since it was relocated.
        constant: Range<usize>,
        /// The dynamic section.
        dynamic: Range<usize>,
    }

    impl Library {
        /// The library that contains an address.
        fn containing(address: usize) -> Option<Library> {
            struct Search {
                address: usize,
                found: Option<Library>,
            }
            extern "C" fn one(info: *mut libc::dl_phdr_info, _bytes: usize, data: *mut c_void) -> c_int {
                // SAFETY: `data` points to the value below, which is not used otherwise during the call.
                let search = unsafe { &mut *data.cast::<Search>() };
                // SAFETY: the loader hands over a valid structure for the call.
                let library = Library::of(unsafe { &*info });
                if library.parts.iter().any(|part| part.contains(&search.address)) {
                    search.found = Some(library);
                }
                c_int::from(search.found.is_some())
            }
            let mut search = Search { address, found: None };
            // SAFETY: `one` has the type that the loader calls, and `search` lives for the call.
            unsafe { libc::dl_iterate_phdr(Some(one), (&raw mut search).cast()) };
            search.found
        }

        fn of(info: &libc::dl_phdr_info) -> Library {
            let base = info.dlpi_addr as usize;
            let headers: &[Elf64_Phdr] = if info.dlpi_phdr.is_null() {
                &[]
            } else {
                // SAFETY: the loader says how many headers there are at the address.
                unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) }
            };
            let range = |header: &Elf64_Phdr| {
                let start = base.wrapping_add(header.p_vaddr as usize);
                start..start.saturating_add(header.p_memsz as usize)
            };
            let only = |kind| headers.iter().find(|header| header.p_type == kind).map_or(0..0, range);
            let is_read =
                |header: &&Elf64_Phdr| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_R != 0;
            Library {
                base,
                parts: headers.iter().filter(is_read).map(range).collect(),
                constant: only(libc::PT_GNU_RELRO),
                dynamic: only(libc::PT_DYNAMIC),
            }
        }

        /// The value of type `T` at an address, if it lies in a loaded part.
        fn read<T: Copy>(&self, address: usize) -> Option<T> {
            let end = address.checked_add(size_of::<T>())?;
            self.parts.iter().find(|part| part.start <= address && end <= part.end)?;
            // SAFETY: the bytes are loaded and readable, and every type that is read consists of integers.
            Some(unsafe { std::ptr::with_exposed_provenance::<T>(address).read_unaligned() })
        }

        /// What the dynamic section says about `tag`.
        fn described(&self, tag: u64) -> Option<usize> {
            self.dynamic
                .clone()
                .step_by(size_of::<Entry>())
                .map_while(|at| self.read::<Entry>(at).filter(|entry| entry.tag != 0))
                .find(|entry| entry.tag == tag)
                .map(|entry| entry.value as usize)
        }

        /// As [`described`](Self::described), for an address. The C library has added the base to it on most
        /// machines.
        fn address(&self, tag: u64) -> Option<usize> {
            let value = self.described(tag)?;
            Some(if value < self.base { value.wrapping_add(self.base) } else { value })
        }

        /// The addresses of the words that hold the address of a function of another library.
        fn slots(&self, name: &CStr) -> Vec<usize> {
            let calls = (CALL_RELOCATIONS, CALL_RELOCATION_BYTES, 0);
            // Those that refer to no symbol come first.
            let others = (RELOCATIONS, RELOCATION_BYTES, self.described(RELATIVE_RELOCATIONS).unwrap_or(0));
            let relocations = [calls, others].into_iter().flat_map(|(table, bytes, first)| {
                let (start, bytes) = (self.address(table).unwrap_or(0), self.described(bytes).unwrap_or(0));
                let skipped = first.saturating_mul(size_of::<Relocation>());
                let places = start.saturating_add(skipped)..start.saturating_add(bytes);
                places.step_by(size_of::<Relocation>()).map_while(|at| self.read::<Relocation>(at))
            });
            relocations
                .filter(|relocation| ADDRESS_OF_SYMBOL.contains(&(relocation.info & 0xffff_ffff)))
                .filter(|relocation| self.is_named((relocation.info >> 32) as usize, name))
                .map(|relocation| self.base.wrapping_add(relocation.offset as usize))
                .collect()
        }

        /// Whether the symbol of that index has this name.
        fn is_named(&self, symbol: usize, name: &CStr) -> bool {
            let (Some(symbols), Some(strings)) = (self.address(SYMBOLS), self.address(STRINGS)) else {
                return false;
            };
            // The name is the first member of a symbol.
            let symbol = symbols.saturating_add(symbol.saturating_mul(size_of::<Elf64_Sym>()));
            let Some(text) = self.read::<u32>(symbol) else { return false };
            let text = strings.saturating_add(text as usize);
            name.to_bytes_with_nul().iter().zip(text..).all(|(byte, at)| self.read::<u8>(at) == Some(*byte))
        }

        /// Overwrites a word of the library's data; `false` if the system does not allow it.
        fn write(&self, slot: usize, value: usize) -> bool {
            if self.read::<usize>(slot).is_none() || !slot.is_multiple_of(size_of::<usize>()) {
                return false;
            }
            // SAFETY: the call only returns a number.
            let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as usize;
            let start = std::ptr::with_exposed_provenance_mut::<c_void>(slot - slot % page);
            // SAFETY: the page is one of the library's data, and no other thread relies on its protection.
            let protect = |protection| unsafe { libc::mprotect(start, page, protection) == 0 };
            // The loader protects whole pages.
            let is_constant = self.constant.contains(&slot)
                && (slot - slot % page).saturating_add(page) <= self.constant.end;
            if is_constant && !protect(libc::PROT_READ | libc::PROT_WRITE) {
                return false;
            }
            // SAFETY: the word is aligned, loaded and writable; the library's code reads it as a whole.
            let word = unsafe { AtomicUsize::from_ptr(std::ptr::with_exposed_provenance_mut(slot)) };
            word.store(value, Ordering::SeqCst);
            !is_constant || protect(libc::PROT_READ)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::Library;

        /// The `rwxp` of the page that contains an address.
        fn protection(address: usize) -> Option<String> {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            maps.lines().find_map(|line| {
                let (range, rest) = line.split_once(' ')?;
                let (start, end) = range.split_once('-')?;
                let number = |text| usize::from_str_radix(text, 16).ok();
                (number(start)?..number(end)?).contains(&address).then(|| rest[..4].to_owned())
            })
        }

        /// This program's own table of addresses is read-only in most builds, and LLVM's is writable.
        #[test]
        fn addresses_of_functions_are_found_and_overwritten() {
            let library = Library::containing(protection as *const () as usize).unwrap();
            // SAFETY: the search has no other effect.
            let there = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__cxa_atexit".as_ptr()) } as usize;
            let slots = library.slots(c"__cxa_atexit");
            assert!(!slots.is_empty());
            for slot in slots {
                let before = protection(slot).unwrap();
                // An address that was not called yet is that of the loader's function.
                let value = library.read::<usize>(slot).unwrap();
                assert!(value == there || before.contains('w'), "{value:x} {there:x} {before}");
                assert!(library.write(slot, there));
                assert_eq!((library.read(slot), protection(slot)), (Some(there), Some(before)));
            }
            assert!(library.slots(c"__cxa_atexi").is_empty());
            assert!(Library::containing(8).is_none());
        }
    }
}
