//! Arguments from C, as types. All `unsafe` for pointers is here.
//!
//! A parameter of type [`Out`], [`In`] or [`Text`] is a pointer of the caller. The driver API promises that
//! each pointer parameter is null or points to a value of its type that is valid for the call. Only C creates
//! values of these types. Because callers break the promise, pointers are checked: null, implausible and
//! misaligned pointers, and addresses of the device without an allocation, are rejected by comparisons.
//! Unless a pointer is to a variable of a calling function, the system is asked whether its memory is mapped
//! ([`host_memory`]). Only the parameters of a launch are read without that, because a launch takes no longer
//! than such a system call. No check can find that mapped memory is not the caller's.
//!
//! Invariant: no method keeps a pointer after the call, except [`HostBytes`], whose memory the caller keeps
//! valid until the operation that uses it is complete.

use crate::handles::Handle;
use crate::status::{Answer, Status};
use host_memory::{Access, is_in_callers, is_mapped};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};

/// Most bytes of a text. Chosen: larger than any module's text.
const TEXT_MAX: usize = 1 << 30;
/// Memory whose size comes from a header is copied in parts of this size.
const PART: usize = 16 << 20;

/// Whether bytes could be the caller's: not near null, and if they lie in the devices' range, in one
/// allocation.
fn could_be(address: usize, bytes: usize) -> bool {
    host_memory::could_be(address, bytes) && !crate::driver::is_unallocated(address as u64, bytes as u64)
}

/// A pointer to which an entry point writes a value.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T: Copy> Out<T> {
    /// The null pointer.
    pub(crate) const NULL: Self = Self(std::ptr::null_mut());

    /// Whether it is null.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Writes the value.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for a null or misaligned pointer.
    pub(crate) fn set(self, value: T) -> Answer {
        self.set_all(&[value])
    }

    /// The pointer to a later element.
    pub(crate) fn offset(self, values: usize) -> Self {
        Self(self.0.wrapping_add(values))
    }

    /// Fails as [`Out::set`] would. Callers use it before work that would have to be undone.
    ///
    /// # Errors
    /// As [`Out::set`].
    pub(crate) fn check(self) -> Answer {
        // SAFETY: as in `set_all`; the caller of the entry point leaves the place alone until it returns.
        let there = could_be(self.0.addr(), size_of::<T>()) && unsafe { host_memory::could_put(self.0) };
        if there { Ok(()) } else { Err(Status::InvalidValue) }
    }

    /// Writes the value unless the pointer is null.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for a misaligned pointer.
    pub(crate) fn set_optional(self, value: T) -> Answer {
        if self.0.is_null() { Ok(()) } else { self.set(value) }
    }

    /// Writes several values, one after another.
    ///
    /// # Errors
    /// As [`Out::set`].
    pub(crate) fn set_all(self, values: &[T]) -> Answer {
        let is_of_caller = could_be(self.0.addr(), size_of_val(values));
        // SAFETY: the caller of the entry point asked for the values there, and the place is not unallocated
        // device memory.
        let written = is_of_caller && unsafe { host_memory::put(self.0, values) };
        if written { Ok(()) } else { Err(Status::InvalidValue) }
    }
}

impl Out<c_char> {
    /// Writes a text and its final zero, cut to `room` bytes.
    ///
    /// # Errors
    /// The errors of [`Out::set`]; also if `room` is 0.
    pub(crate) fn set_text(self, text: &str, room: usize) -> Answer {
        let Some(most) = room.checked_sub(1) else { return Err(Status::InvalidValue) };
        let bytes = &text.as_bytes()[..text.len().min(most)];
        let bytes: Vec<c_char> = bytes.iter().chain(&[0]).map(|byte| *byte as c_char).collect();
        self.set_all(&bytes)
    }
}

/// A pointer from which an entry point reads values.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

impl<T> From<Out<T>> for In<T> {
    /// A pointer to a value that was already written.
    fn from(place: Out<T>) -> Self {
        Self(place.0.cast_const())
    }
}

impl<T: Copy> In<T> {
    /// The null pointer.
    pub(crate) const NULL: Self = Self(std::ptr::null());

    /// Whether it is null.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The value.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for a null or misaligned pointer.
    pub(crate) fn get(self) -> Result<T, Status> {
        if !could_be(self.0.addr(), size_of::<T>()) {
            return Err(Status::InvalidValue);
        }
        // SAFETY: the caller of the entry point promises a value of this type.
        unsafe { host_memory::get(self.0) }.ok_or(Status::InvalidValue)
    }

    /// The array from element `values`.
    pub(crate) fn offset(self, values: usize) -> Self {
        Self(self.0.wrapping_add(values))
    }

    /// Element `index` of an array, read without asking the system: for parameters of launches.
    ///
    /// # Errors
    /// As [`In::get`].
    pub(crate) fn at(self, index: usize) -> Result<T, Status> {
        let at = self.0.wrapping_add(index);
        if !at.is_aligned() || at.addr() < self.0.addr() || !could_be(at.addr(), size_of::<T>()) {
            return Err(Status::InvalidValue);
        }
        // SAFETY: the pointer is not null and aligned, and the caller of the entry point promises an array
        // with this element.
        Ok(unsafe { at.read() })
    }

    /// Fills a slice with the first elements of an array, read without asking the system.
    ///
    /// # Errors
    /// As [`In::get`].
    pub(crate) fn read_into(self, into: &mut [T]) -> Answer {
        if !self.0.is_aligned() || !could_be(self.0.addr(), size_of_val(into)) {
            return Err(Status::InvalidValue);
        }
        // SAFETY: the pointer is not null and aligned, and the caller of the entry point promises an array of
        // `into.len()` elements. `into` is borrowed exclusively.
        unsafe { std::ptr::copy(self.0, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// The first `count` values of an array.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for a null or misaligned pointer, and if the memory is not mapped;
    /// `CUDA_ERROR_OUT_OF_MEMORY`.
    pub(crate) fn all(self, count: usize) -> Result<Vec<T>, Status> {
        let bytes = count.checked_mul(size_of::<T>()).ok_or(Status::InvalidValue)?;
        if !could_be(self.0.addr(), bytes) {
            return Err(Status::InvalidValue);
        }
        // SAFETY: the caller of the entry point promises values of this type.
        let values = unsafe { host_memory::get_all(self.0, count) };
        values.map_err(|_| Status::OutOfMemory)?.ok_or(Status::InvalidValue)
    }
}

/// A null-terminated text of the caller.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// A copy; bytes that are not UTF-8 become replacement characters.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for a null pointer, and for memory that ends before the text does.
    pub(crate) fn get(self) -> Result<String, Status> {
        if !could_be(self.0.addr(), 1) {
            return Err(Status::InvalidValue);
        }
        match host_memory::text(self.0.expose_provenance(), TEXT_MAX) {
            Ok(Some(text)) => Ok(String::from_utf8(text)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())),
            Ok(None) => Err(Status::InvalidValue),
            Err(host_memory::Refused) => {
                // SAFETY: the pointer is not null, and the caller of the entry point promises a
                // null-terminated text.
                let text = unsafe { CStr::from_ptr(self.0) };
                Ok(String::from_utf8_lossy(text.to_bytes()).into_owned())
            }
        }
    }
}

/// A pointer to memory whose type depends on the call: images of modules, buffers of parameters, host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Pointer(*mut c_void);

// SAFETY: the type is a number. Only entry points turn it into accesses, under the promise of their
// documentation.
unsafe impl Send for Pointer {}
// SAFETY: as for `Send`.
unsafe impl Sync for Pointer {}

impl Pointer {
    /// The null pointer.
    pub(crate) const NULL: Self = Self(std::ptr::null_mut());

    /// A text that lives as long as the process.
    pub(crate) fn of_text(text: &'static CStr) -> Self {
        Self(text.as_ptr().cast_mut().cast())
    }

    /// A pointer to bytes of this library, for a function that takes C's pointers. The bytes outlive the
    /// call.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self(bytes.as_ptr().cast_mut().cast())
    }

    /// A pointer to values of this library, which live as long as C may use them. Values that C may write
    /// have interior mutability.
    pub(crate) fn of_values<T>(values: &[T]) -> Self {
        Self(values.as_ptr().cast_mut().cast())
    }

    /// Whether it points to these bytes, which contain no zero. Memory after the first difference may be
    /// unmapped.
    pub(crate) fn begins_with(self, bytes: &[u8]) -> bool {
        bytes.iter().enumerate().all(|(at, byte)| self.offset(at).values::<u8>().get() == Ok(*byte))
    }

    /// The pointer plus `bytes`.
    pub(crate) fn offset(self, bytes: usize) -> Self {
        Self(self.0.wrapping_byte_add(bytes))
    }

    /// The address.
    pub(crate) fn address(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// Whether it is null.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The pointer with an address.
    pub(crate) fn from_address(address: u64) -> Self {
        Self(std::ptr::with_exposed_provenance_mut(address as usize))
    }

    /// The pointer to a null-terminated text.
    pub(crate) fn text(self) -> Text {
        Text(self.0.cast_const().cast())
    }

    /// The pointer to values of a type.
    pub(crate) fn values<T: Copy>(self) -> In<T> {
        In(self.0.cast_const().cast())
    }

    /// The pointer to memory for values of a type.
    pub(crate) fn place<T: Copy>(self) -> Out<T> {
        Out(self.0.cast())
    }
}

/// Host memory of a copy. The caller keeps it valid until the copy is complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostBytes {
    start: Pointer,
    bytes: usize,
}

impl HostBytes {
    /// Memory of the caller.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for an implausible address, unless there is nothing to copy.
    pub(crate) fn new(start: Pointer, bytes: usize) -> Result<Self, Status> {
        if !could_be(start.0.addr(), bytes) {
            return Err(Status::InvalidValue);
        }
        Ok(Self { start, bytes })
    }

    /// Fails unless each page of it permits the access. It must be called before the bytes are lent.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`.
    pub(crate) fn check(&self, access: Access) -> Answer {
        let address = self.start.0.addr();
        let there = is_in_callers(address, self.bytes) || host_memory::permits(address, self.bytes, access);
        if there { Ok(()) } else { Err(Status::InvalidValue) }
    }

    /// A copy, for memory whose size comes from the caller's data. It allocates no more than is mapped.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` if not all of it is mapped, `CUDA_ERROR_OUT_OF_MEMORY`.
    pub(crate) fn copied(&self) -> Result<Vec<u8>, Status> {
        let mut copy = Vec::new();
        while copy.len() < self.bytes {
            let part =
                Self { start: self.start.offset(copy.len()), bytes: (self.bytes - copy.len()).min(PART) };
            if !is_in_callers(part.start.0.addr(), part.bytes) && !is_mapped(part.start.0.addr(), part.bytes)
            {
                return Err(Status::InvalidValue);
            }
            copy.try_reserve(part.bytes).map_err(|_| Status::OutOfMemory)?;
            let start = copy.len();
            copy.resize(start + part.bytes, 0);
            let into = &mut copy[start..];
            match host_memory::read(part.start.0.expose_provenance(), into) {
                Ok(read) if read == part.bytes => {}
                Ok(_) => return Err(Status::InvalidValue),
                Err(host_memory::Refused) => part.read(|from| into.copy_from_slice(from)),
            }
        }
        Ok(copy)
    }

    /// A part of the bytes.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` if the part is outside.
    pub(crate) fn part(&self, offset: usize, bytes: usize) -> Result<Self, Status> {
        if offset > self.bytes || bytes > self.bytes - offset {
            return Err(Status::InvalidValue);
        }
        Ok(Self { start: Pointer(self.start.0.wrapping_byte_add(offset)), bytes })
    }

    /// Copies from other host memory of the same size. The two may overlap.
    pub(crate) fn copy(&self, from: &HostBytes) {
        let bytes = self.bytes.min(from.bytes);
        if bytes > 0 {
            // SAFETY: both permitted the copy when they were checked, and the caller keeps them valid until
            // it is complete.
            unsafe { std::ptr::copy(from.start.0.cast_const().cast::<u8>(), self.start.0.cast(), bytes) };
        }
    }

    /// Lends the bytes for reading.
    pub(crate) fn read<R>(&self, with: impl FnOnce(&[u8]) -> R) -> R {
        if self.bytes == 0 {
            return with(&[]);
        }
        // SAFETY: the bytes were readable when they were checked, and the caller of the copy keeps them valid
        // and unchanged until it is complete.
        with(unsafe { std::slice::from_raw_parts(self.start.0.cast_const().cast(), self.bytes) })
    }

    /// Lends the bytes for writing.
    pub(crate) fn write<R>(&self, with: impl FnOnce(&mut [u8]) -> R) -> R {
        if self.bytes == 0 {
            return with(&mut []);
        }
        // SAFETY: the bytes were writable when they were checked, and the caller of the copy does not use
        // them until it is complete.
        with(unsafe { std::slice::from_raw_parts_mut(self.start.0.cast(), self.bytes) })
    }
}

/// A file descriptor of the caller.
pub(crate) struct Descriptor(OwnedFd);

impl Descriptor {
    /// A copy of the descriptor with a number; `None` if the process has none.
    pub(crate) fn of(number: c_int) -> Option<Self> {
        if number < 0 {
            return None;
        }
        // SAFETY: the descriptor is borrowed only for this call, in which the system checks that it exists.
        let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
        borrowed.try_clone_to_owned().ok().map(Self)
    }

    /// Lends the descriptor.
    pub(crate) fn borrow(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Gives a descriptor to the caller, who closes it.
    pub(crate) fn given(descriptor: OwnedFd) {
        let _the_callers = descriptor.into_raw_fd();
    }
}

/// Lets kernels of a device access all memory of the process: for entry points that document this.
pub(crate) fn reach_host(vm: &ptxvm::Vm) {
    // SAFETY: the caller of the entry point passes host pointers to kernels, and promises that the kernels
    // access only memory that the caller may access.
    unsafe { vm.reach_host() }
}

/// Fails unless a function pointer's address is mapped. Only the caller knows whether it is a function.
fn check_code(address: usize) -> Answer {
    let is_device = crate::driver::is_of_device(address as u64);
    if !is_device && could_be(address, 1) && is_mapped(address, 1) {
        Ok(())
    } else {
        Err(Status::InvalidValue)
    }
}

/// `CUhostFn`: a host function that a stream calls.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct HostFunction(Option<unsafe extern "C" fn(*mut c_void)>);

impl HostFunction {
    /// Fails for a null pointer and for an unmapped address.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`.
    pub(crate) fn check(self) -> Answer {
        check_code(self.0.map_or(0, |function| function as usize))
    }

    /// Calls it.
    pub(crate) fn call(self, data: Pointer) {
        if let Some(function) = self.0 {
            // SAFETY: the caller of the entry point promises a function that takes this pointer, on any
            // thread.
            unsafe { function(data.0) };
        }
    }
}

/// `CUstreamCallback`: a host function that a stream calls.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct StreamCallback(Option<unsafe extern "C" fn(Handle, Status, *mut c_void)>);

impl StreamCallback {
    /// Fails for a null pointer and for an unmapped address.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`.
    pub(crate) fn check(self) -> Answer {
        check_code(self.0.map_or(0, |function| function as usize))
    }

    /// Calls it.
    pub(crate) fn call(self, stream: Handle, status: Status, data: Pointer) {
        if let Some(function) = self.0 {
            // SAFETY: the caller of the entry point promises a function that takes these arguments, on any
            // thread.
            unsafe { function(stream, status, data.0) };
        }
    }
}

/// A function of another ptxvm library that works in a stream. Returns 0, or an error number of the driver
/// API.
pub(crate) type WorkFunction = unsafe extern "C" fn(*mut c_void) -> i32;
/// A function that releases the data of such work.
pub(crate) type WorkRelease = unsafe extern "C" fn(*mut c_void);

/// Work of another ptxvm library. It is released when nothing can run it any more.
pub(crate) struct LibraryWork {
    run: WorkFunction,
    release: WorkRelease,
    work: Pointer,
}

impl LibraryWork {
    /// Takes ownership of the work.
    pub(crate) fn new(run: WorkFunction, release: WorkRelease, work: Pointer) -> Self {
        Self { run, release, work }
    }

    /// Runs the work.
    ///
    /// # Errors
    /// The error that the library returns.
    pub(crate) fn run(&self) -> Answer {
        // SAFETY: the library passed a function and its data, which may be used on any thread until they are
        // released.
        match unsafe { (self.run)(self.work.0) } {
            0 => Ok(()),
            2 => Err(Status::OutOfMemory),
            700 => Err(Status::IllegalAddress),
            _ => Err(Status::Unknown),
        }
    }
}

impl Drop for LibraryWork {
    fn drop(&mut self) {
        // SAFETY: the same as in `run`. The work is dropped once, and never run again.
        unsafe { (self.release)(self.work.0) };
    }
}

/// `CUoccupancyB2DSize`: the dynamic shared memory of a CTA by its size.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct SharedOfBlock(Option<unsafe extern "C" fn(i32) -> usize>);

impl SharedOfBlock {
    /// Fails if the address is unmapped; a null pointer is allowed.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`.
    pub(crate) fn check(self) -> Answer {
        self.0.map_or(Ok(()), |function| check_code(function as usize))
    }

    /// The function's result, or `otherwise` for a null pointer.
    pub(crate) fn call(self, block: i32, otherwise: usize) -> usize {
        match self.0 {
            // SAFETY: the caller of the entry point promises a function of a number.
            Some(function) => unsafe { function(block) },
            None => otherwise,
        }
    }
}

/// The function that the loader calls when the process ends, after the destructors of the program and of
/// libraries that depend on this one.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".fini_array"))]
static AT_END: extern "C" fn() = {
    extern "C" fn ends() {
        let _never_panics_into_c = std::panic::catch_unwind(crate::process_ends);
    }
    ends
};

/// Lets kernels of a device access host memory until it is unregistered.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE` for zero bytes and for memory that cannot be read and written,
/// `CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED` for device memory and memory that is already registered.
pub(crate) fn adopt(vm: &ptxvm::Vm, start: Pointer, bytes: usize) -> Answer {
    if bytes == 0 || !could_be(start.0.addr(), bytes) || !host_memory::is_writable(start.0.addr(), bytes) {
        return Err(Status::InvalidValue);
    }
    // SAFETY: `cuMemHostRegister` requires its caller to keep the memory until it is unregistered, and to
    // access it as memory that a device changes.
    unsafe { vm.adopt("registered host memory", start.address(), bytes as u64) }
        .map_err(|_| Status::HostMemoryAlreadyRegistered)
}
