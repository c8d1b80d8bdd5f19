//! The work of nodes.
//!
//! Invariant: a node checks memory when it runs, because the memory may have changed since the node was
//! created.

use super::condition::{Condition, Word};
use super::memory::Reserved;
use super::{Graph, Handle};
use crate::array::CudaArray;
use crate::context::Context;
use crate::copy::Rows;
use crate::copy_box::{Copy3d, Prepared};
use crate::driver::Driver;
use crate::event::Event;
use crate::ffi::{HostFunction, In, Pointer};
use crate::function::Function;
use crate::launch::{Size, checked_parameters};
use crate::memory_operations::Batch;
use crate::status::{Answer, Status};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// A function that may be called repeatedly.
pub(crate) type Action = Arc<dyn Fn() -> Answer + Send + Sync>;

/// The work of a node.
#[derive(Clone)]
pub(crate) enum Work {
    /// An empty node, which only orders others.
    Nothing,
    Kernel(Arc<KernelNode>),
    Copy(Arc<CopyNode>),
    Set(Set),
    Host(HostFunction, Pointer),
    /// A child graph, owned by the node.
    Child(Arc<Graph>),
    Record(Handle, Arc<Event>),
    Wait(Handle, Arc<Event>),
    Allocate(Arc<Reserved>),
    Free(Arc<Reserved>),
    Batch(Arc<Batch>),
    Condition(Arc<Condition>),
    /// Captured work without a node type of its own: the reported type, and the action.
    Again(c_int, Action),
}

impl Work {
    /// `CUgraphNodeType`
    pub(crate) fn kind(&self) -> c_int {
        match self {
            Work::Kernel(_) => 0,
            Work::Copy(_) => 1,
            Work::Set(_) => 2,
            Work::Host(..) => 3,
            Work::Child(_) => 4,
            Work::Nothing => 5,
            Work::Wait(..) => 6,
            Work::Record(..) => 7,
            Work::Allocate(_) => 10,
            Work::Free(_) => 11,
            Work::Batch(_) => 12,
            Work::Condition(_) => 13,
            Work::Again(kind, _) => *kind,
        }
    }

    /// The value of a conditional node.
    pub(super) fn word(&self) -> Option<Arc<Word>> {
        match self {
            Work::Condition(condition) => Some(Arc::clone(condition.word())),
            _ => None,
        }
    }

    /// The graphs that it owns.
    pub(super) fn bodies(&self) -> &[Arc<Graph>] {
        match self {
            Work::Child(graph) => std::slice::from_ref(graph),
            Work::Condition(condition) => condition.bodies(),
            Work::Nothing
            | Work::Kernel(_)
            | Work::Copy(_)
            | Work::Set(_)
            | Work::Host(..)
            | Work::Record(..)
            | Work::Wait(..)
            | Work::Allocate(_)
            | Work::Free(_)
            | Work::Batch(_)
            | Work::Again(..) => &[],
        }
    }

    /// The number of nodes that it stands for: its own, and those of the graphs that it owns.
    pub(super) fn size(&self) -> usize {
        1 + self.bodies().iter().map(|body| body.size.load(Ordering::Relaxed)).sum::<usize>()
    }
}

/// `CUDA_KERNEL_NODE_PARAMS_v1`. The later version has more fields after these.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct KernelParams {
    pub(super) function: Handle,
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared: c_uint,
    pub(super) params: In<Pointer>,
    pub(super) extra: In<Pointer>,
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct KernelParams2 {
    pub(super) first: KernelParams,
    /// `CUkernel`, used if there is no `CUfunction`.
    pub(super) kernel: Handle,
    pub(super) context: Handle,
}

/// A launch.
pub(crate) struct KernelNode {
    pub(super) handle: Handle,
    pub(crate) function: Arc<Function>,
    pub(crate) size: Size,
    pub(crate) params: Vec<u8>,
    /// Attributes that the program set, by number.
    pub(super) attributes: BTreeMap<c_int, [u64; 8]>,
    shown: Shown,
}

/// A copy of the parameters that programs can read and write.
struct Shown {
    _bytes: Box<[AtomicU8]>,
    slots: Box<[AtomicUsize]>,
}

impl Shown {
    fn new(function: &Function, params: &[u8]) -> Self {
        let bytes: Box<[AtomicU8]> = params.iter().map(|byte| AtomicU8::new(*byte)).collect();
        let start = Pointer::of_values(&bytes);
        let slots = function.kernel.params();
        let slots =
            slots.iter().map(|slot| AtomicUsize::new(start.offset(slot.offset).address() as usize)).collect();
        Self { _bytes: bytes, slots }
    }
}

impl KernelNode {
    /// A launch of a function.
    pub(crate) fn new(handle: Handle, function: Arc<Function>, size: Size, params: Vec<u8>) -> Self {
        let shown = Shown::new(&function, &params);
        Self { handle, function, size, params, attributes: BTreeMap::new(), shown }
    }

    /// The same launch with other attributes. `cooperative` applies if the attributes do not set it.
    pub(super) fn with(&self, attributes: BTreeMap<c_int, [u64; 8]>, cooperative: bool) -> Self {
        let cooperative = attributes.get(&COOPERATIVE).map_or(cooperative, |value| value[0] as u32 != 0);
        let size = Size { cooperative, ..self.size };
        let copy = Self::new(self.handle, Arc::clone(&self.function), size, self.params.clone());
        Self { attributes, ..copy }
    }

    /// The launch of a program's parameters.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_HANDLE`, `CUDA_ERROR_INVALID_VALUE`.
    pub(super) fn of(driver: &Driver, given: In<KernelParams>) -> Result<Work, Status> {
        Self::of_parts(driver, given.get()?)
    }

    /// The same for the later version.
    ///
    /// # Errors
    /// As [`KernelNode::of`].
    pub(super) fn of_second(driver: &Driver, given: In<KernelParams2>) -> Result<Work, Status> {
        let KernelParams2 { first, kernel, context: _ } = given.get()?;
        let function = if first.function.is_null() { kernel } else { first.function };
        Self::of_parts(driver, KernelParams { function, ..first })
    }

    fn of_parts(driver: &Driver, given: KernelParams) -> Result<Work, Status> {
        let KernelParams { function: handle, grid, block, shared, params, extra } = given;
        let function = driver.functions.get(handle)?;
        let params = checked_parameters(&function, params, extra)?;
        let size = Size { grid, block, shared, cooperative: false };
        Ok(Work::Kernel(Arc::new(Self::new(handle, function, size, params))))
    }

    /// The parameters of the launch.
    pub(super) fn shown(&self) -> KernelParams {
        let Size { grid, block, shared, cooperative: _ } = self.size;
        let params = Pointer::of_values(&self.shown.slots).values();
        KernelParams { function: self.handle, grid, block, shared, params, extra: In::NULL }
    }

    /// The parameters of the launch in the later form.
    pub(super) fn shown_second(&self) -> KernelParams2 {
        let context = self.function.context.handle;
        KernelParams2 { first: self.shown(), kernel: Handle::NULL, context }
    }
}

/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`
pub(super) const COOPERATIVE: c_int = 2;

/// A copy, with its arrays.
pub(crate) struct CopyNode {
    pub(super) copy: Copy3d,
    arrays: [Option<Arc<CudaArray>>; 2],
}

impl CopyNode {
    /// A copy.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE`, `CUDA_ERROR_INVALID_HANDLE`.
    pub(crate) fn of(driver: &Driver, copy: Copy3d) -> Result<Work, Status> {
        let arrays = copy.arrays(driver)?;
        Ok(Work::Copy(Arc::new(Self { copy, arrays })))
    }

    pub(super) fn run(&self, driver: &Driver) -> Answer {
        let prepared = Prepared::with(driver, &self.copy, &self.arrays).map_err(illegal)?;
        prepared.map_or(Ok(()), |copy| copy.run(driver).map_err(illegal))
    }
}

/// `CUDA_MEMSET_NODE_PARAMS_v1`. The later version has more fields after these.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Set {
    to: u64,
    pitch: usize,
    value: c_uint,
    element: c_uint,
    width: usize,
    height: usize,
}

impl Set {
    /// The parameters that set these rows.
    pub(crate) fn of_rows(rows: &Rows) -> Self {
        let Rows { address: to, pitch, pattern: value, size, width, height } = *rows;
        Self { to, pitch, value, element: size as c_uint, width, height }
    }

    pub(super) fn of(given: In<Set>) -> Result<Work, Status> {
        let set = given.get()?;
        let fits = matches!(set.element, 1 | 2 | 4) && set.to.is_multiple_of(set.element.into());
        if fits { Ok(Work::Set(set)) } else { Err(Status::InvalidValue) }
    }

    pub(super) fn run(&self, driver: &Driver) -> Answer {
        let Set { to, pitch, value, element, width, height } = *self;
        let rows = Rows { address: to, pitch, pattern: value, size: element as usize, width, height };
        if rows.check(driver).map_err(illegal)? { rows.fill(driver) } else { Ok(()) }
    }
}

/// `CUDA_HOST_NODE_PARAMS_v1`. The later version has more fields after these.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct HostParams {
    pub(super) function: HostFunction,
    pub(super) data: Pointer,
}

impl HostParams {
    pub(super) fn of(given: In<HostParams>) -> Result<Work, Status> {
        let HostParams { function, data } = given.get()?;
        function.check()?;
        Ok(Work::Host(function, data))
    }
}

/// An error that is found at a node's turn is reported through its context, like a trap.
fn illegal(_: Status) -> Status {
    Status::IllegalAddress
}

/// The event of a handle.
///
/// # Errors
/// `CUDA_ERROR_INVALID_HANDLE`.
pub(super) fn event(driver: &Driver, handle: Handle) -> Result<(Handle, Arc<Event>), Status> {
    Ok((handle, driver.events.get(handle)?))
}

/// The action of a kernel node.
///
/// # Errors
/// The errors of [`crate::launch::prepare`].
pub(super) fn kernel_action(
    driver: &'static Driver,
    context: &Arc<Context>,
    node: &KernelNode,
) -> Result<Action, Status> {
    let launch = crate::launch::prepare(driver, context, &node.function, node.size, node.params.clone())?;
    let (context, function) = (Arc::clone(context), Arc::clone(&node.function));
    let epoch = context.health.epoch();
    Ok(Arc::new(move || crate::launch::run(driver, (&context, &epoch), &function, &launch)))
}
