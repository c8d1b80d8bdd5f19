//! Descriptors of cuBLASLt: layouts of matrices, operations, preferences. Each maps the numbers of attributes
//! to values.
//!
//! A descriptor that the library creates is identified by a handle; one in the program's memory is identified
//! by its address. Its contents are never stored in the program's memory, so nothing there is trusted.
//!
//! Invariant: an attribute has one size, and is set and read only with that size.

use crate::entry::functions;
use crate::ffi::Pointer;
use crate::status::{Answer, Status, valid};
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// An attribute: its number, its size in bytes, and its default value.
type Attribute = (i32, usize, i64);

/// The kinds of descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `cublasLtMatrixLayout_t`
    Layout,
    /// `cublasLtMatmulDesc_t`
    Operation,
    /// `cublasLtMatmulPreference_t`
    Preference,
}

impl Kind {
    fn attributes(self) -> &'static [Attribute] {
        match self {
            Self::Layout => LAYOUT,
            Self::Operation => OPERATION,
            Self::Preference => PREFERENCE,
        }
    }

    /// The size of a descriptor in the program's memory.
    fn bytes(self) -> usize {
        if self == Self::Operation { 256 } else { 64 }
    }
}

/// Type, order, rows, columns, leading dimension, batch count, stride, plane offset, batch mode.
const LAYOUT: &[Attribute] =
    &[(0, 4, 0), (1, 4, 0), (2, 8, 0), (3, 8, 0), (4, 8, 0), (5, 4, 1), (6, 8, 0), (7, 8, 0), (8, 4, 0)];

/// In the order of the public header. 2 is the full matrix, and -1 means the type of the result.
const OPERATION: &[Attribute] = &[
    (0, 4, 0),
    (1, 4, 0),
    (2, 4, 0),
    (3, 4, 0),
    (4, 4, 0),
    (5, 4, 0),
    (6, 4, 2),
    (7, 4, 1),
    (8, 8, 0),
    (10, 8, 0),
    (11, 8, 0),
    (12, 8, 0),
    (13, 8, 0),
    (14, 8, 0),
    (15, 4, 0),
    (17, 8, 0),
    (18, 8, 0),
    (19, 8, 0),
    (20, 8, 0),
    (21, 8, 0),
    (22, 4, -1),
    (23, 8, 0),
    (24, 8, 0),
    (25, 1, 0),
    (26, 4, -1),
    (27, 4, 0),
    (28, 4, 0),
    (29, 8, 0),
    (30, 8, 0),
    (31, 4, 0),
    (32, 4, 0),
    (33, 4, 0),
    (34, 4, 0),
    (35, 4, 0),
    (36, 8, 0),
    (37, 4, 0),
];

/// In the order of the public header. Alignments are 256 bytes by default.
const PREFERENCE: &[Attribute] = &[
    (0, 4, 0),
    (1, 8, 0),
    (3, 4, 0xff),
    (5, 4, 256),
    (6, 4, 256),
    (7, 4, 256),
    (8, 4, 256),
    (9, 4, 0),
    (12, 8, -1),
];

/// A descriptor.
#[derive(Clone, Debug)]
pub(super) struct Descriptor {
    kind: Kind,
    set: BTreeMap<i32, i64>,
}

impl Descriptor {
    fn new(kind: Kind, values: &[(i32, i64)]) -> Self {
        Self { kind, set: values.iter().copied().collect() }
    }

    /// The value of an attribute, by its number in the public header.
    pub(super) fn get(&self, number: i32) -> i64 {
        let unless_set = self.kind.attributes().iter().find(|(other, ..)| *other == number);
        self.set.get(&number).copied().or(unless_set.map(|(_, _, value)| *value)).unwrap_or(0)
    }
}

static DESCRIPTORS: LazyLock<Mutex<HashMap<usize, Descriptor>>> = LazyLock::new(Mutex::default);

fn table() -> MutexGuard<'static, HashMap<usize, Descriptor>> {
    DESCRIPTORS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The descriptor of a handle or address.
///
/// # Errors
/// `CUBLAS_STATUS_INVALID_VALUE`.
pub(super) fn find(at: Pointer, kind: Kind) -> Answer<Descriptor> {
    let found = table().get(&at.0).filter(|descriptor| descriptor.kind == kind).cloned();
    found.ok_or(Status::INVALID_VALUE)
}

fn create(place: Pointer, descriptor: Descriptor) -> Answer {
    // Like handles of contexts: below every mapped page and 16 apart. The other start keeps the two kinds
    // distinct.
    static NEXT: AtomicUsize = AtomicUsize::new(0x1008);
    let handle = NEXT.fetch_add(16, Ordering::Relaxed);
    place.write(&handle.to_ne_bytes())?;
    table().insert(handle, descriptor);
    Ok(())
}

/// Registers a descriptor in the program's memory.
fn initialize(place: Pointer, bytes: usize, descriptor: Descriptor) -> Answer {
    valid(bytes >= descriptor.kind.bytes() && place.0.is_multiple_of(8))?;
    // The bytes have no meaning, but the memory must be writable.
    place.write(&vec![0; descriptor.kind.bytes()])?;
    table().insert(place.0, descriptor);
    Ok(())
}

fn destroy(at: Pointer, kind: Kind) -> Answer {
    if at.is_null() {
        return Ok(());
    }
    find(at, kind)?;
    table().remove(&at.0);
    Ok(())
}

fn size(kind: Kind, number: i32) -> Answer<usize> {
    let found = kind.attributes().iter().find(|(other, ..)| *other == number);
    found.map(|(_, size, _)| *size).ok_or(Status::INVALID_VALUE)
}

fn set(at: Pointer, kind: Kind, number: i32, from: Pointer, bytes: usize) -> Answer {
    find(at, kind)?;
    let size = size(kind, number)?;
    valid(bytes == size && !from.is_null())?;
    let mut value = [0; 8];
    from.read(&mut value[..size])?;
    let value = match size {
        1 => i64::from(value[0] as i8),
        4 => i64::from(i32::from_le_bytes([value[0], value[1], value[2], value[3]])),
        _ => i64::from_le_bytes(value),
    };
    let mut table = table();
    let descriptor = table.get_mut(&at.0).ok_or(Status::INVALID_VALUE)?;
    descriptor.set.insert(number, value);
    Ok(())
}

fn get(at: Pointer, kind: Kind, number: i32, to: Pointer, bytes: usize, written: Pointer) -> Answer {
    let value = find(at, kind)?.get(number);
    let size = size(kind, number)?;
    if !written.is_null() {
        written.write(&size.to_ne_bytes())?;
    }
    if bytes == 0 {
        return valid(!written.is_null());
    }
    valid(bytes == size && !to.is_null())?;
    to.write(&value.to_le_bytes()[..size])
}

fn layout(ty: c_int, rows: u64, columns: u64, ld: i64) -> Descriptor {
    let values = [(0, ty.into()), (2, rows as i64), (3, columns as i64), (4, ld)];
    Descriptor::new(Kind::Layout, &values)
}

fn operation(compute: c_int, scale: c_int) -> Descriptor {
    Descriptor::new(Kind::Operation, &[(0, compute.into()), (1, scale.into())])
}

functions! {
    cublasLtMatrixLayoutCreate(place: Pointer, ty: c_int, rows: u64, columns: u64, ld: i64) {
        create(place, layout(ty, rows, columns, ld))
    }

    cublasLtMatrixLayoutInit_internal(place: Pointer, bytes: usize, ty: c_int, rows: u64, columns: u64, ld: i64) {
        initialize(place, bytes, layout(ty, rows, columns, ld))
    }

    cublasLtMatmulDescCreate(place: Pointer, compute: c_int, scale: c_int) {
        create(place, operation(compute, scale))
    }

    cublasLtMatmulDescInit_internal(place: Pointer, bytes: usize, compute: c_int, scale: c_int) {
        initialize(place, bytes, operation(compute, scale))
    }

    cublasLtMatmulPreferenceCreate(place: Pointer) {
        create(place, Descriptor::new(Kind::Preference, &[]))
    }

    cublasLtMatmulPreferenceInit_internal(place: Pointer, bytes: usize) {
        initialize(place, bytes, Descriptor::new(Kind::Preference, &[]))
    }
}

macro_rules! accessors {
    ($($kind:ident $destroy:ident $set:ident $get:ident;)*) => {
        functions! {$(
            $destroy(at: Pointer) {
                destroy(at, Kind::$kind)
            }

            $set(at: Pointer, attribute: c_int, from: Pointer, bytes: usize) {
                set(at, Kind::$kind, attribute, from, bytes)
            }

            $get(at: Pointer, attribute: c_int, to: Pointer, bytes: usize, written: Pointer) {
                get(at, Kind::$kind, attribute, to, bytes, written)
            }
        )*}
    };
}

accessors! {
    Layout cublasLtMatrixLayoutDestroy cublasLtMatrixLayoutSetAttribute cublasLtMatrixLayoutGetAttribute;
    Operation cublasLtMatmulDescDestroy cublasLtMatmulDescSetAttribute cublasLtMatmulDescGetAttribute;
    Preference cublasLtMatmulPreferenceDestroy cublasLtMatmulPreferenceSetAttribute
        cublasLtMatmulPreferenceGetAttribute;
}
