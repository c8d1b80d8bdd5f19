//! Pages of memory that can be mapped at several addresses, and in several processes.
//!
//! They are an anonymous file, whose descriptor can be passed to other processes.
//!
//! Invariant: the file is sealed against shrinking, so accesses to mapped pages do not fault. Files without
//! this seal are refused.

use super::{DeviceId, Memory, MemoryError, exclusive};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The name of our files, followed by the number of the device whose memory they are.
const NAME: &str = "ptxvm memory of device ";

/// Pages of memory.
#[derive(Debug)]
pub struct Pages {
    file: OwnedFd,
    bytes: u64,
    device: DeviceId,
    /// The memory usage that they count for; `None` for pages of another process.
    account: Option<Arc<AtomicU64>>,
}

impl Pages {
    /// Their size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The device whose memory they are.
    pub fn device(&self) -> DeviceId {
        self.device
    }

    /// A descriptor of the file, for another process.
    ///
    /// # Errors
    /// [`MemoryError::Share`] where the process can have no more descriptors.
    pub fn descriptor(&self) -> Result<OwnedFd, MemoryError> {
        exclusive::share();
        self.file.try_clone().map_err(|_| MemoryError::Share)
    }

    /// Pages from a descriptor that this process or another got from [`Pages::descriptor`].
    ///
    /// # Errors
    /// [`MemoryError::Share`] for other files.
    pub fn import(descriptor: BorrowedFd<'_>) -> Result<Arc<Self>, MemoryError> {
        let file = descriptor.try_clone_to_owned().map_err(|_| MemoryError::Share)?;
        let (bytes, device) = system::look(&file).ok_or(MemoryError::Share)?;
        exclusive::share();
        Ok(Arc::new(Self::of_file(file, bytes, device)))
    }

    /// Pages of a file that count for no memory usage.
    pub(super) fn of_file(file: OwnedFd, bytes: u64, device: DeviceId) -> Self {
        Self { file, bytes, device, account: None }
    }

    pub(super) fn file(&self) -> &OwnedFd {
        &self.file
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if let Some(account) = &self.account {
            account.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

impl Memory {
    /// Allocates zeroed pages of the device.
    ///
    /// # Errors
    /// [`MemoryError::Share`] if the system has no such files; [`MemoryError::OutOfMemory`] if it has not
    /// enough memory.
    pub fn pages(&self, bytes: u64) -> Result<Arc<Pages>, MemoryError> {
        let file = create(self.device, bytes)?;
        let account = Arc::clone(&self.store.held[self.device.index()]);
        account.fetch_add(bytes, Ordering::Relaxed);
        Ok(Arc::new(Pages { file, bytes, device: self.device, account: Some(account) }))
    }
}

/// Creates a file of fixed size.
pub(super) fn create(device: DeviceId, bytes: u64) -> Result<OwnedFd, MemoryError> {
    let file = system::file(&format!("{NAME}{}", device.index())).ok_or(MemoryError::Share)?;
    let sized = File::from(file);
    sized.set_len(bytes).map_err(|_| MemoryError::OutOfMemory { bytes })?;
    let file = OwnedFd::from(sized);
    if system::seal(file.as_fd()) { Ok(file) } else { Err(MemoryError::Share) }
}

#[cfg(target_os = "linux")]
mod system {
    use super::{DeviceId, NAME};
    use rustix::fs::{MemfdFlags, SealFlags};
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

    pub(super) fn file(name: &str) -> Option<OwnedFd> {
        rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).ok()
    }

    pub(super) fn seal(file: BorrowedFd<'_>) -> bool {
        rustix::fs::fcntl_add_seals(file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).is_ok()
    }

    /// Size and device of a file of ours; `None` for other files.
    pub(super) fn look(file: &OwnedFd) -> Option<(u64, DeviceId)> {
        let seals = rustix::fs::fcntl_get_seals(file.as_fd()).ok()?;
        let wrong = SealFlags::WRITE | SealFlags::FUTURE_WRITE;
        if !seals.contains(SealFlags::SHRINK) || seals.intersects(wrong) {
            return None;
        }
        let name = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        let name = name.to_str()?.strip_prefix("/memfd:")?.strip_prefix(NAME)?;
        let device = name.strip_suffix(" (deleted)").unwrap_or(name).parse().ok()?;
        let status = rustix::fs::fstat(file).ok()?;
        Some((u64::try_from(status.st_size).ok()?, DeviceId::new(device)?))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::DeviceId;
    use std::os::fd::{BorrowedFd, OwnedFd};

    pub(super) fn file(_name: &str) -> Option<OwnedFd> {
        None
    }

    pub(super) fn seal(_file: BorrowedFd<'_>) -> bool {
        false
    }

    pub(super) fn look(_file: &OwnedFd) -> Option<(u64, DeviceId)> {
        None
    }
}
