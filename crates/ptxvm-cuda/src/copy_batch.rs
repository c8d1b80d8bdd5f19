//! Copies with attributes, one at a time and in batches, and hints about many ranges of managed memory.
//!
//! Invariant: a batch is checked completely before a copy of it is submitted. The copies of a batch run one
//! after another, which the documentation allows. Hints about locations and overlap have no effect.
//!
//! What it does not do: batches of copies of slices are refused.

use crate::context::current;
use crate::copy::{Way, copy};
use crate::driver::Driver;
use crate::entry::{DefaultStream, entries};
use crate::ffi::{In, Out};
use crate::handles::Handle;
use crate::memory::{Side, check_managed};
use crate::pool::Location;
use crate::status::{Answer, Status};
use crate::stream::{When, is_legacy, queue};
use host_memory::Access;
use std::ffi::{c_int, c_uint};

/// `CUmemcpyAttributes`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Attributes {
    order: c_int,
    from: Location,
    to: Location,
    flags: c_uint,
}

/// `CU_MEMCPY_SRC_ACCESS_ORDER_STREAM`, `..._DURING_API_CALL`, `..._ANY`
const IN_STREAM: c_int = 1;
const DURING_CALL: c_int = 2;
const ANY: c_int = 3;
/// Most operations of a batch. Chosen: more than programs have.
const MOST: usize = 1 << 20;

impl Attributes {
    /// The time at which the source may be read.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`.
    fn when(&self) -> Result<When, Status> {
        let Self { order, from: _, to: _, flags } = *self;
        match order {
            _ if flags > 1 => Err(Status::InvalidValue),
            IN_STREAM | ANY => Ok(When::InTurn),
            DURING_CALL => Ok(When::Now),
            _ => Err(Status::InvalidValue),
        }
    }
}

/// The legacy stream is not allowed for batches.
fn check_stream(stream: Handle, default: DefaultStream) -> Answer {
    if is_legacy(stream, default) { Err(Status::InvalidValue) } else { Ok(()) }
}

/// Fails unless the starts of groups of operations begin with 0, increase, and are less than the number of
/// operations.
fn check_groups(starts: &[usize], count: usize) -> Answer {
    let rises = starts.windows(2).all(|pair| pair[0] < pair[1]);
    let fits = starts.first() == Some(&0) && starts.last().is_some_and(|last| *last < count);
    if rises && fits { Ok(()) } else { Err(Status::InvalidValue) }
}

/// The lists of a batch of copies.
struct Lists {
    to: In<u64>,
    from: In<u64>,
    sizes: In<usize>,
    count: usize,
    attributes: In<Attributes>,
    starts: In<usize>,
    groups: usize,
}

/// Submits a batch. `failed` is told the index of a copy that cannot be made.
fn submit(lists: &Lists, place: (Handle, DefaultStream), failed: impl Fn(usize) -> Answer) -> Answer {
    let (driver, _) = queue(place.0, place.1)?;
    check_stream(place.0, place.1)?;
    let Lists { to, from, sizes, count, attributes, starts, groups } = *lists;
    if count == 0 || count > MOST || groups > count {
        return Err(Status::InvalidValue);
    }
    let starts = starts.all(groups)?;
    check_groups(&starts, count)?;
    let attributes = attributes.all(groups)?;
    let whens = attributes.iter().map(Attributes::when).collect::<Result<Vec<_>, _>>()?;
    let (to, from, sizes) = (to.all(count)?, from.all(count)?, sizes.all(count)?);
    let copies =
        || to.iter().zip(&from).zip(&sizes).map(|((to, from), bytes)| (*to, *from, *bytes)).enumerate();
    for (index, (to, from, bytes)) in copies() {
        let checked = check(driver, to, from, bytes);
        if checked.is_err() {
            failed(index)?;
            return checked;
        }
    }
    for (index, operands) in copies() {
        let group = starts.partition_point(|start| *start <= index) - 1;
        copy(Way::Unified, operands, place, whens[group])?;
    }
    Ok(())
}

fn check(driver: &Driver, to: u64, from: u64, bytes: usize) -> Answer {
    if bytes == 0 {
        return Err(Status::InvalidValue);
    }
    Side::unified(driver, from, bytes)?.check(Access::Read)?;
    Side::unified(driver, to, bytes)?.writable(driver, bytes)?.check(Access::Write)
}

/// Checks the ranges of a batch of hints.
fn check_ranges(
    (stream, default): (Handle, DefaultStream),
    (addresses, sizes, count): (In<u64>, In<usize>, usize),
    flags: u64,
) -> Answer {
    let (driver, _) = queue(stream, default)?;
    check_stream(stream, default)?;
    if flags != 0 || count == 0 || count > MOST {
        return Err(Status::InvalidValue);
    }
    let ranges = addresses.all(count)?.into_iter().zip(sizes.all(count)?);
    ranges.into_iter().try_for_each(|(address, bytes)| check_managed(driver, address, bytes))
}

fn check_locations((locations, starts, groups): (In<Location>, In<usize>, usize), count: usize) -> Answer {
    if groups > count {
        return Err(Status::InvalidValue);
    }
    check_groups(&starts.all(groups)?, count)?;
    locations.all(groups)?.into_iter().try_for_each(Location::check_any)
}

entries! { ENTRIES;
    /// Copies between several addresses of any kind.
    fn cuMemcpyBatchAsync | cuMemcpyBatchAsync_ptsz as default (
        to: In<u64>, from: In<u64>, sizes: In<usize>, count: usize, attributes: In<Attributes>, starts: In<usize>,
        groups: usize, failed: Out<usize>, stream: Handle,
    ) {
        failed.set_optional(usize::MAX)?;
        let lists = Lists { to, from, sizes, count, attributes, starts, groups };
        submit(&lists, (stream, default), |index| failed.set_optional(index))
    }

    /// Copies between several addresses of any kind.
    fn cuMemcpyBatchAsync_v2 | cuMemcpyBatchAsync_v2_ptsz as default (
        to: In<u64>, from: In<u64>, sizes: In<usize>, count: usize, attributes: In<Attributes>, starts: In<usize>,
        groups: usize, stream: Handle,
    ) {
        let lists = Lists { to, from, sizes, count, attributes, starts, groups };
        submit(&lists, (stream, default), |_| Ok(()))
    }

    /// Copies between addresses of any kind, with attributes.
    fn cuMemcpyWithAttributesAsync | cuMemcpyWithAttributesAsync_ptsz as default (
        to: u64, from: u64, bytes: usize, attributes: In<Attributes>, stream: Handle,
    ) {
        queue(stream, default)?;
        let when = attributes.get()?.when()?;
        copy(Way::Unified, (to, from, bytes), (stream, default), when)
    }

    /// Prefetches several ranges of managed memory, which has no effect.
    fn cuMemPrefetchBatchAsync | cuMemPrefetchBatchAsync_ptsz as default (
        addresses: In<u64>, sizes: In<usize>, count: usize, locations: In<Location>, starts: In<usize>, groups: usize,
        flags: u64, stream: Handle,
    ) {
        check_ranges((stream, default), (addresses, sizes, count), flags)?;
        check_locations((locations, starts, groups), count)
    }

    /// Discards the contents of several ranges of managed memory, which has no effect.
    fn cuMemDiscardBatchAsync | cuMemDiscardBatchAsync_ptsz as default (
        addresses: In<u64>, sizes: In<usize>, count: usize, flags: u64, stream: Handle,
    ) {
        check_ranges((stream, default), (addresses, sizes, count), flags)
    }

    /// Discards and prefetches several ranges of managed memory, which has no effect.
    fn cuMemDiscardAndPrefetchBatchAsync | cuMemDiscardAndPrefetchBatchAsync_ptsz as default (
        addresses: In<u64>, sizes: In<usize>, count: usize, locations: In<Location>, starts: In<usize>, groups: usize,
        flags: u64, stream: Handle,
    ) {
        check_ranges((stream, default), (addresses, sizes, count), flags)?;
        check_locations((locations, starts, groups), count)
    }

    /// Attributes of managed memory.
    fn cuMemRangeGetAttributes(
        data: In<crate::ffi::Pointer>, sizes: In<usize>, attributes: In<c_int>, number: usize, address: u64, count: usize,
    ) {
        let (driver, _) = current()?;
        check_managed(driver, address, count)?;
        if number == 0 || number > MOST {
            return Err(Status::InvalidValue);
        }
        let places = data.all(number)?.into_iter().zip(sizes.all(number)?);
        places.zip(attributes.all(number)?).try_for_each(|((data, bytes), attribute)| {
            crate::memory::range_attribute(data, bytes, attribute)
        })
    }
}
