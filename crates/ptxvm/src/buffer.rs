//! Arrays in device memory.
//!
//! Invariant: a [`Buffer`] owns its device memory; dropping it frees the memory. Its address is 256-byte
//! aligned and does not change.

use crate::Error;
use crate::vm::Device;
use ptx_exec::mem::MemoryError;
use std::marker::PhantomData;
use std::sync::Arc;

/// Bytes that are copied at once, a multiple of every element's size. It bounds the temporary memory of a
/// copy.
const PIECE: usize = 1 << 14;

/// A type whose values can be stored in device memory: plain numbers.
pub trait Element: Copy + sealed::Sealed + 'static {
    /// Writes the value's bytes, little-endian; `bytes.len()` is the type's size.
    #[doc(hidden)]
    fn put(self, bytes: &mut [u8]);
    /// The value of these bytes; `bytes.len()` is the type's size.
    #[doc(hidden)]
    fn get(bytes: &[u8]) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($ty:ty)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            fn put(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
            fn get(bytes: &[u8]) -> Self {
                <$ty>::from_le_bytes(bytes.try_into().expect("the caller cut the bytes to the size of the type"))
            }
        }
    )*};
}

elements! { u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 }

/// An array in device memory.
#[derive(Debug)]
pub struct Buffer<T: Element> {
    device: Arc<Device>,
    address: u64,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    pub(crate) fn new(device: &Arc<Device>, label: &str, bytes: u64, len: usize) -> Result<Self, Error> {
        let address = device.alloc(label, bytes)?;
        Ok(Self { device: device.clone(), address, len, element: PhantomData })
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its device address, for kernel parameters.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Reports to the sanitizers that the host has written the whole buffer by its address, which they do not
    /// see. Does nothing without sanitizers.
    pub fn report_write(&self) {
        self.device.memory.tell_written(self.address, (self.len * size_of::<T>()) as u64);
    }

    /// Copies it to the host.
    ///
    /// # Errors
    /// Of the machine, if the host has no memory for the copy; of the caller, if the kernel has freed the
    /// memory.
    pub fn read(&self) -> Result<Vec<T>, Error> {
        let size = size_of::<T>();
        let mut data = Vec::new();
        ptx_exec::mem::attempt(|| data.try_reserve_exact(self.len))
            .map_err(|_| MemoryError::Host { bytes: (self.len * size) as u64 })?;
        let mut bytes = [0; PIECE];
        for start in (0..self.len).step_by(PIECE / size) {
            let length = (self.len - start).min(PIECE / size) * size;
            self.device.copy_out(self.address + (start * size) as u64, &mut bytes[..length])?;
            data.extend(bytes[..length].chunks_exact(size).map(T::get));
        }
        Ok(data)
    }

    /// Copies `data` to the beginning of the buffer.
    ///
    /// # Errors
    /// Of the caller, if `data` is longer than the buffer.
    pub fn write(&self, data: &[T]) -> Result<(), Error> {
        if data.len() > self.len {
            return Err(Error::caller(format!(
                "{} elements do not fit a buffer of {}",
                data.len(),
                self.len
            )));
        }
        let size = size_of::<T>();
        let mut bytes = [0; PIECE];
        let mut address = self.address;
        for piece in data.chunks(PIECE / size) {
            let bytes = &mut bytes[..size_of_val(piece)];
            bytes.chunks_exact_mut(size).zip(piece).for_each(|(to, value)| value.put(to));
            self.device.copy_in(address, bytes)?;
            address += bytes.len() as u64;
        }
        Ok(())
    }
}

impl<T: Element> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.device.free(self.address);
    }
}
