//! Memory pools between processes of one user: a pool is passed as a file descriptor, and its allocations as
//! data that any channel can carry.
//!
//! The file of a descriptor contains the identity of the pool. The data of an allocation are a handle as in
//! [`crate::ipc`], with the number of its pool.
//!
//! Invariant: an allocation is opened only through the imported pool that it was allocated from. What it does
//! not do: handles other than file descriptors.

use crate::context::current;
use crate::driver::{Driver, driver};
use crate::entry::entries;
use crate::ffi::{Descriptor, In, Out, Pointer};
use crate::handles::Handle;
use crate::ipc::{Bytes, DESCRIPTOR, Identity, Name, POOL_MEMORY, PageOfWords, open_name};
use crate::log;
use crate::memory::Kind;
use crate::pool::Pool;
use crate::status::{Answer, Status};
use ptxvm::Pages;
use std::ffi::c_int;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// The first word of a pool's file.
const POOL: u64 = u64::from_le_bytes(*b"ptxvmpl1");

fn check_type(kind: c_int, flags: u64) -> Answer {
    match kind {
        _ if flags != 0 || kind <= 0 => Err(Status::InvalidValue),
        DESCRIPTOR => Ok(()),
        _ => {
            log::refused("memory pools shared other than by file descriptors");
            Err(Status::NotSupported)
        }
    }
}

fn pool(driver: &Driver, handle: Handle) -> Result<Arc<Pool>, Status> {
    driver.pools.get(handle).map_err(|_| Status::InvalidValue)
}

entries! { ENTRIES;
    /// A file descriptor of a pool, for another process.
    fn cuMemPoolExportToShareableHandle(shared: Pointer, pool: Handle, kind: c_int, flags: u64) {
        let driver = driver()?;
        let place = shared.place::<c_int>();
        place.check()?;
        let found = self::pool(driver, pool)?;
        check_type(kind, flags)?;
        if !found.is_exportable() {
            return Err(Status::InvalidValue);
        }
        let Identity { process, began, pool } = Identity::of_own(pool)?;
        let pages = driver.vm_of(found.device())?.pages(crate::ipc::PAGE).map_err(|_| Status::OperatingSystem)?;
        PageOfWords::of(driver, &pages)?.set(&[POOL, process, began, pool]);
        let descriptor = pages.descriptor().map_err(|_| Status::OperatingSystem)?;
        place.set(descriptor.as_raw_fd())?;
        // The caller closes the descriptor.
        Descriptor::given(descriptor);
        Ok(())
    }

    /// The pool of a file descriptor, of which allocations can be imported.
    fn cuMemPoolImportFromShareableHandle(pool: Out<Handle>, shared: Pointer, kind: c_int, flags: u64) {
        let driver = driver()?;
        pool.check()?;
        check_type(kind, flags)?;
        let number = c_int::try_from(shared.address()).map_err(|_| Status::InvalidValue)?;
        let descriptor = Descriptor::of(number).ok_or(Status::InvalidValue)?;
        let pages = Pages::import(descriptor.borrow()).map_err(|_| Status::InvalidValue)?;
        if pages.bytes() != crate::ipc::PAGE {
            return Err(Status::InvalidValue);
        }
        crate::init::check_device(pages.device().index() as c_int)?;
        let [kind, process, began, number] = PageOfWords::of(driver, &pages)?.get();
        if kind != POOL {
            return Err(Status::InvalidValue);
        }
        let identity = Identity { process, began, pool: number };
        pool.set(driver.pools.insert(Pool::imported(pages.device(), identity)))
    }

    /// Data by which another process imports an allocation of a pool.
    fn cuMemPoolExportPointer(shared: Out<Bytes>, address: u64) {
        let (driver, _) = current()?;
        shared.check()?;
        let (start, block) = driver.blocks.at(address).ok_or(Status::InvalidValue)?;
        let Kind::Pool(pool) = block.kind else { return Err(Status::InvalidValue) };
        if start != address || !self::pool(driver, pool)?.is_exportable() {
            return Err(Status::InvalidValue);
        }
        let exported = driver.vm.export(start).map_err(|_| Status::OperatingSystem)?;
        let open = driver.imports.exported(&exported.pages)?;
        let name = open.name(POOL_MEMORY, exported.offset, exported.bytes)?;
        shared.set(name.of_pool(pool).pack())
    }

    /// Imports an allocation of a pool. It is freed like one of the process's own.
    fn cuMemPoolImportPointer(address: Out<u64>, pool: Handle, shared: In<Bytes>) {
        let (driver, context) = current()?;
        address.check()?;
        let found = self::pool(driver, pool)?;
        let name = Name::unpack(shared.get()?, POOL_MEMORY).map_err(|_| Status::InvalidValue)?;
        if found.identity() != Some(Identity::of_name(&name)) {
            return Err(Status::InvalidValue);
        }
        let mut devices = found.granted();
        devices.push((context.vm(driver).number(), ptxvm::Access::ReadWrite));
        let at = open_name(driver, &name, &devices)?;
        address.set(at).inspect_err(|_| crate::ipc::unmap(driver, at))?;
        driver.blocks.add(at, name.bytes, Kind::Received(pool), &context);
        Ok(())
    }
}
