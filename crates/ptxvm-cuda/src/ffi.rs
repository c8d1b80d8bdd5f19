//! What C hands to an entry point, as types: all `unsafe` of pointers is here.
//!
//! A parameter of type [`Out`], [`In`] or [`Text`] is a pointer of the caller. The driver API promises for each of its pointer parameters that
//! it is null or points to a value of its type, and valid for the call; only C makes values of these types, so the promise holds wherever one is
//! used. Callers break that promise, too. So numbers that are no address, misaligned ones, and addresses of the device where nothing is allocated are
//! refused by comparisons; and of what is not a variable of a caller the system says first whether it is there ([`host_memory`]). Only the
//! parameters of a launch are read without that, as a launch takes no longer than such a call. What cannot be checked is whether memory that is
//! there is the caller's.
//!
//! Invariant: no method keeps a pointer beyond the call, save [`HostBytes`], which stands for memory that the caller keeps valid until the
//! operation that uses it is done.

use crate::handles::Handle;
use crate::status::{Answer, Status};
use host_memory::{is_in_callers, is_mapped};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};

/// Most bytes of a text, in bytes. Chosen: beyond what a module's text is.
const TEXT_MAX: usize = 1 << 30;
/// Memory whose size a header says is copied so much at a time.
const PART: usize = 16 << 20;

/// Whether bytes could be the caller's: not near null, and where they lie in the device's range, in one allocation.
fn could_be(address: usize, bytes: usize) -> bool {
    host_memory::could_be(address, bytes) && !crate::driver::is_unallocated(address as u64, bytes as u64)
}

/// A pointer to which an entry point writes a value.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T: Copy> Out<T> {
    /// No pointer.
    pub(crate) const NULL: Self = Self(std::ptr::null_mut());

    /// Writes the value.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for a null or misaligned pointer.
    pub(crate) fn set(self, value: T) -> Answer {
        self.set_all(&[value])
    }

    /// The place so many values further on.
    pub(crate) fn offset(self, values: usize) -> Self {
        Self(self.0.wrapping_add(values))
    }

    /// Fails as [`Out::set`] would, before work is done that would have to be undone.
    ///
    /// # Errors
    /// As [`Out::set`].
    pub(crate) fn check(self) -> Answer {
        let wrong = !self.0.is_aligned() || !could_be(self.0.addr(), size_of::<T>());
        if wrong { Err(Status::InvalidValue) } else { Ok(()) }
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
        // SAFETY: the caller of the entry point asked for the values there, which is not where the device has no memory.
        let written = is_of_caller && unsafe { host_memory::put(self.0, values) };
        if written { Ok(()) } else { Err(Status::InvalidValue) }
    }
}

impl Out<c_char> {
    /// Writes a text and its final zero, cut to `room` bytes.
    ///
    /// # Errors
    /// As [`Out::set`]; also for no room at all.
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
    /// A place that has a value already.
    fn from(place: Out<T>) -> Self {
        Self(place.0.cast_const())
    }
}

impl<T: Copy> In<T> {
    /// No pointer.
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
        // SAFETY: the caller of the entry point says that a value of this type is there.
        unsafe { host_memory::get(self.0) }.ok_or(Status::InvalidValue)
    }

    /// The array from value number `values` on.
    pub(crate) fn offset(self, values: usize) -> Self {
        Self(self.0.wrapping_add(values))
    }

    /// Value number `index` of an array, whose memory is not looked at before it is read: for parameters of launches.
    ///
    /// # Errors
    /// As [`In::get`].
    pub(crate) fn at(self, index: usize) -> Result<T, Status> {
        let at = self.0.wrapping_add(index);
        if !at.is_aligned() || at.addr() < self.0.addr() || !could_be(at.addr(), size_of::<T>()) {
            return Err(Status::InvalidValue);
        }
        // SAFETY: not null, aligned, and the caller of the entry point promises an array that has this element.
        Ok(unsafe { at.read() })
    }

    /// Fills a slice with the first values of an array, whose memory is not looked at before it is read.
    ///
    /// # Errors
    /// As [`In::get`].
    pub(crate) fn read_into(self, into: &mut [T]) -> Answer {
        if !self.0.is_aligned() || !could_be(self.0.addr(), size_of_val(into)) {
            return Err(Status::InvalidValue);
        }
        // SAFETY: not null, aligned, and the caller of the entry point promises an array of so many values; `into` is ours.
        unsafe { std::ptr::copy(self.0, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// The first `count` values of an array.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for a null or misaligned pointer, and where there is no memory for so many; `CUDA_ERROR_OUT_OF_MEMORY`.
    pub(crate) fn all(self, count: usize) -> Result<Vec<T>, Status> {
        let bytes = count.checked_mul(size_of::<T>()).ok_or(Status::InvalidValue)?;
        if !could_be(self.0.addr(), bytes) {
            return Err(Status::InvalidValue);
        }
        // SAFETY: the caller of the entry point says that values of this type are there.
        let values = unsafe { host_memory::get_all(self.0, count) };
        values.map_err(|_| Status::OutOfMemory)?.ok_or(Status::InvalidValue)
    }
}

/// A text of the caller, ended by a zero.
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
                // SAFETY: not null, and ended by a zero as the caller of the entry point promises.
                let text = unsafe { CStr::from_ptr(self.0) };
                Ok(String::from_utf8_lossy(text.to_bytes()).into_owned())
            }
        }
    }
}

/// A pointer of which C alone knows what it points to: images of modules, buffers of parameters, host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Pointer(*mut c_void);

// SAFETY: a number that only entry points turn into accesses, under the promise of the function's documentation.
unsafe impl Send for Pointer {}
// SAFETY: as for `Send`.
unsafe impl Sync for Pointer {}

impl Pointer {
    /// No pointer.
    pub(crate) const NULL: Self = Self(std::ptr::null_mut());

    /// A text that lives as long as the process.
    pub(crate) fn of_text(text: &'static CStr) -> Self {
        Self(text.as_ptr().cast_mut().cast())
    }

    /// Bytes of ours, for a function that takes what C gives; they outlive the call.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self(bytes.as_ptr().cast_mut().cast())
    }

    /// Values of ours, which stay as long as C may look at them. What C may write to has interior mutability.
    pub(crate) fn of_values<T>(values: &[T]) -> Self {
        Self(values.as_ptr().cast_mut().cast())
    }

    /// Whether it points to these bytes, which hold no zero. What lies behind the first that differs need not be there.
    pub(crate) fn begins_with(self, bytes: &[u8]) -> bool {
        bytes.iter().enumerate().all(|(at, byte)| self.offset(at).values::<u8>().get() == Ok(*byte))
    }

    /// The pointer so many bytes further on.
    pub(crate) fn offset(self, bytes: usize) -> Self {
        Self(self.0.wrapping_byte_add(bytes))
    }

    /// As a number.
    pub(crate) fn address(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// Whether it is null.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The pointer of that number.
    pub(crate) fn from_address(address: u64) -> Self {
        Self(std::ptr::with_exposed_provenance_mut(address as usize))
    }

    /// What it points to, as a text ended by a zero.
    pub(crate) fn text(self) -> Text {
        Text(self.0.cast_const().cast())
    }

    /// What it points to, as values of that type.
    pub(crate) fn values<T: Copy>(self) -> In<T> {
        In(self.0.cast_const().cast())
    }

    /// What it points to, as a place for values of that type.
    pub(crate) fn place<T: Copy>(self) -> Out<T> {
        Out(self.0.cast())
    }
}

/// Host memory of a copy, which the caller keeps valid until the copy is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostBytes {
    start: Pointer,
    bytes: usize,
}

impl HostBytes {
    /// Memory of the caller.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for what cannot be memory of the caller, unless there is nothing to copy.
    pub(crate) fn new(start: Pointer, bytes: usize) -> Result<Self, Status> {
        if !could_be(start.0.addr(), bytes) {
            return Err(Status::InvalidValue);
        }
        Ok(Self { start, bytes })
    }

    /// Fails unless all of it is there. To be called before the bytes are lent.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`.
    pub(crate) fn check(&self) -> Answer {
        let address = self.start.0.addr();
        let there = is_in_callers(address, self.bytes) || is_mapped(address, self.bytes);
        if there { Ok(()) } else { Err(Status::InvalidValue) }
    }

    /// A copy, for memory whose size the caller's data say: takes no more than is there.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` where it is not all there, `CUDA_ERROR_OUT_OF_MEMORY`.
    pub(crate) fn copied(&self) -> Result<Vec<u8>, Status> {
        let mut copy = Vec::new();
        while copy.len() < self.bytes {
            let part =
                Self { start: self.start.offset(copy.len()), bytes: (self.bytes - copy.len()).min(PART) };
            part.check()?;
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

    /// Some of them.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` where there are not so many.
    pub(crate) fn part(&self, offset: usize, bytes: usize) -> Result<Self, Status> {
        if offset > self.bytes || bytes > self.bytes - offset {
            return Err(Status::InvalidValue);
        }
        Ok(Self { start: Pointer(self.start.0.wrapping_byte_add(offset)), bytes })
    }

    /// Copies other memory of the host, of the same size. The two may overlap.
    pub(crate) fn copy(&self, from: &HostBytes) {
        let bytes = self.bytes.min(from.bytes);
        if bytes > 0 {
            // SAFETY: there when it was checked, and the caller of the copy keeps so many bytes of both valid until it is done.
            unsafe { std::ptr::copy(from.start.0.cast_const().cast::<u8>(), self.start.0.cast(), bytes) };
        }
    }

    /// Lends the bytes for reading.
    pub(crate) fn read<R>(&self, with: impl FnOnce(&[u8]) -> R) -> R {
        if self.bytes == 0 {
            return with(&[]);
        }
        // SAFETY: there when it was checked, and the caller of the copy keeps so many bytes valid and unchanged until it is done.
        with(unsafe { std::slice::from_raw_parts(self.start.0.cast_const().cast(), self.bytes) })
    }

    /// Lends the bytes for writing.
    pub(crate) fn write<R>(&self, with: impl FnOnce(&mut [u8]) -> R) -> R {
        if self.bytes == 0 {
            return with(&mut []);
        }
        // SAFETY: there when it was checked, and the caller of the copy leaves so many bytes to it until it is done.
        with(unsafe { std::slice::from_raw_parts_mut(self.start.0.cast(), self.bytes) })
    }
}

/// A file descriptor of the caller.
pub(crate) struct Descriptor(OwnedFd);

impl Descriptor {
    /// A copy of the descriptor of that number; `None` where the process has no such file.
    pub(crate) fn of(number: c_int) -> Option<Self> {
        if number < 0 {
            return None;
        }
        // SAFETY: borrowed for this call alone, in which the system says whether there is such a descriptor.
        let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
        borrowed.try_clone_to_owned().ok().map(Self)
    }

    /// Lends it.
    pub(crate) fn borrow(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Hands a descriptor over to the caller, who closes it.
    pub(crate) fn given(descriptor: OwnedFd) {
        let _the_callers = descriptor.into_raw_fd();
    }
}

/// Opens all memory of the process to the kernels of a device: for entry points whose documentation says so.
pub(crate) fn reach_host(vm: &ptxvm::Vm) {
    // SAFETY: the caller of the entry point hands host pointers to kernels, and promises that these access only what it may access itself.
    unsafe { vm.reach_host() }
}

/// Fails unless something is at an address that the caller says is that of a function. Whether it is one, only the caller knows.
fn check_code(address: usize) -> Answer {
    let is_device = crate::driver::is_of_device(address as u64);
    if !is_device && could_be(address, 1) && is_mapped(address, 1) {
        Ok(())
    } else {
        Err(Status::InvalidValue)
    }
}

/// `CUhostFn`: a function of the host that a stream calls.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct HostFunction(Option<unsafe extern "C" fn(*mut c_void)>);

impl HostFunction {
    /// Fails for a null pointer, and where nothing is.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`.
    pub(crate) fn check(self) -> Answer {
        check_code(self.0.map_or(0, |function| function as usize))
    }

    /// Calls it.
    pub(crate) fn call(self, data: Pointer) {
        if let Some(function) = self.0 {
            // SAFETY: the caller of the entry point promises a function that takes this pointer, on any thread.
            unsafe { function(data.0) };
        }
    }
}

/// `CUstreamCallback`: a function of the host that a stream calls.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct StreamCallback(Option<unsafe extern "C" fn(Handle, Status, *mut c_void)>);

impl StreamCallback {
    /// Fails for a null pointer, and where nothing is.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`.
    pub(crate) fn check(self) -> Answer {
        check_code(self.0.map_or(0, |function| function as usize))
    }

    /// Calls it.
    pub(crate) fn call(self, stream: Handle, status: Status, data: Pointer) {
        if let Some(function) = self.0 {
            // SAFETY: the caller of the entry point promises a function that takes these, on any thread.
            unsafe { function(stream, status, data.0) };
        }
    }
}

/// What another library of ours does in a stream: 0, or an error of the driver API.
pub(crate) type WorkFunction = unsafe extern "C" fn(*mut c_void) -> i32;
/// Gives up what it needs for that.
pub(crate) type WorkRelease = unsafe extern "C" fn(*mut c_void);

/// Work of another library of ours, which is released when nothing can run it any more.
pub(crate) struct LibraryWork {
    run: WorkFunction,
    release: WorkRelease,
    work: Pointer,
}

impl LibraryWork {
    /// Takes it over.
    pub(crate) fn new(run: WorkFunction, release: WorkRelease, work: Pointer) -> Self {
        Self { run, release, work }
    }

    /// Does it.
    ///
    /// # Errors
    /// What the library says.
    pub(crate) fn run(&self) -> Answer {
        // SAFETY: our library handed over a function with what it works on, which stays until it is released, and may be called from any thread.
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
        // SAFETY: as for `run`; it is dropped once, and never run again.
        unsafe { (self.release)(self.work.0) };
    }
}

/// `CUoccupancyB2DSize`: how much dynamic shared memory CTAs of a size need.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct SharedOfBlock(Option<unsafe extern "C" fn(i32) -> usize>);

impl SharedOfBlock {
    /// Fails where nothing is at its address; a null pointer is allowed.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`.
    pub(crate) fn check(self) -> Answer {
        self.0.map_or(Ok(()), |function| check_code(function as usize))
    }

    /// What it says, or `otherwise` for a null pointer.
    pub(crate) fn call(self, block: i32, otherwise: usize) -> usize {
        match self.0 {
            // SAFETY: the caller of the entry point promises a function of a number.
            Some(function) => unsafe { function(block) },
            None => otherwise,
        }
    }
}

/// Lends memory of the host to the kernels of a device until it is unregistered.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE` for no bytes and for what is not memory that can be read and written, `CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED` where
/// it is device memory, or lent already.
pub(crate) fn adopt(vm: &ptxvm::Vm, start: Pointer, bytes: usize) -> Answer {
    if bytes == 0 || !could_be(start.0.addr(), bytes) || !host_memory::is_writable(start.0.addr(), bytes) {
        return Err(Status::InvalidValue);
    }
    // SAFETY: `cuMemHostRegister` asks of its caller that the memory stays until it is unregistered; programs access it as memory that a device
    // changes.
    unsafe { vm.adopt("registered host memory", start.address(), bytes as u64) }
        .map_err(|_| Status::HostMemoryAlreadyRegistered)
}
