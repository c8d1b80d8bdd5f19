//! Contexts: the current one of a thread, the primary one of a device, and sticky errors.
//!
//! Invariant: after a trap, a context answers every call that needs it with the same error until it is
//! destroyed or has recovered ([`crate::health`]).

use crate::capture::Slot;
use crate::driver::{Driver, driver};
use crate::entry::entries;
use crate::ffi::{In, Out, Pointer};
use crate::handles::Handle;
use crate::health::{self, Health};
use crate::init::device;
use crate::status::{Answer, Status};
use ptxvm::{Stream, StreamGroup, StreamKind, Vm};
use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// `CU_CTX_FLAGS_MASK`
const FLAGS: c_uint = 0xff;
/// The number of values of `CUlimit`.
const LIMITS: usize = 11;
/// The limit of persisting lines of L2.
const PERSISTING: usize = 6;
/// The limit of the buffer of `printf`.
const PRINTF: usize = 1;
/// The most bytes that a launch may print, regardless of the limit.
const PRINTF_MOST: usize = 1 << 30;

/// A context.
pub(crate) struct Context {
    /// Its own handle.
    pub(crate) handle: Handle,
    /// Number of its device.
    pub(crate) device: c_int,
    /// Whether it is the primary one of the device.
    pub(crate) primary: bool,
    /// The group of its streams.
    pub(crate) streams: StreamGroup,
    /// The default stream.
    pub(crate) legacy: Arc<Stream>,
    /// Positions in captures of the default streams that threads have of their own.
    own_slots: Mutex<Vec<Slot>>,
    /// Attributes that the program set for the default stream.
    pub(crate) attributes: Arc<crate::stream_attributes::Attributes>,
    /// Whether it is destroyed, or about to be.
    gone: AtomicBool,
    /// The error of a trap.
    pub(crate) health: Health,
    flags: AtomicU32,
    limits: Mutex<[usize; LIMITS]>,
    /// Contexts whose devices' memory its kernels can access.
    peers: Mutex<Vec<Handle>>,
    cache: AtomicU32,
    banks: AtomicU32,
}

impl Context {
    fn new(driver: &Driver, handle: Handle, device: c_int, primary: bool, flags: c_uint) -> Self {
        let streams = driver.vm.streams();
        let legacy = Arc::new(streams.stream(StreamKind::Legacy));
        // Default limits: stack, printf, malloc; the others are those of such devices.
        let limits = [1024, 1 << 20, 8 << 20, 2, 2048, 64, 0, 0, 0, 0, 0];
        Self {
            handle,
            device,
            primary,
            streams,
            legacy,
            own_slots: Mutex::default(),
            attributes: Arc::default(),
            gone: AtomicBool::new(false),
            health: Health::default(),
            flags: AtomicU32::new(flags),
            limits: Mutex::new(limits),
            peers: Mutex::default(),
            cache: AtomicU32::new(0),
            banks: AtomicU32::new(1),
        }
    }

    /// Positions in captures of the default streams that threads have of their own.
    pub(crate) fn own_slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.own_slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The size that the program set for the buffer of `printf`, in bytes.
    pub(crate) fn printf_bytes(&self) -> u64 {
        self.limits()[PRINTF].min(PRINTF_MOST) as u64
    }

    /// Fails with the error of a trap, if there is one.
    ///
    /// # Errors
    /// The error of the trap.
    pub(crate) fn check(self: &Arc<Self>) -> Answer {
        if self.is_gone() {
            return Err(Status::ContextIsDestroyed);
        }
        health::check(self)
    }

    /// Like [`Context::check`], for work of the context's streams, which is not the answer of a call.
    ///
    /// # Errors
    /// The error of the trap.
    pub(crate) fn check_within(&self) -> Answer {
        if self.is_gone() {
            return Err(Status::ContextIsDestroyed);
        }
        self.health.error().map_or(Ok(()), |(status, _)| Err(status))
    }

    /// Whether it is destroyed, or about to be.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// Memory and modules of its device.
    pub(crate) fn vm<'a>(&self, driver: &'a Driver) -> &'a Vm {
        // Contexts are created only for existing devices.
        driver.device(self.device).map_or(&driver.vm, |device| &device.vm)
    }

    /// Contexts whose devices' memory its kernels can access.
    pub(crate) fn peers(&self) -> MutexGuard<'_, Vec<Handle>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limits(&self) -> MutexGuard<'_, [usize; LIMITS]> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The primary context of a device.
#[derive(Default)]
pub(crate) struct Primary {
    context: Option<Handle>,
    retained: u32,
    flags: c_uint,
}

thread_local! {
    /// The current context of the thread, or null. It has no destructor, so calls find it while the thread
    /// ends: in destructors of static objects, and in functions that `atexit` calls.
    static TOP: Cell<Handle> = const { Cell::new(Handle::NULL) };
    /// The contexts below it on the thread's stack, the next one last. They are gone while the thread ends.
    static BELOW: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

fn top() -> Option<Handle> {
    Some(TOP.get()).filter(|handle| !handle.is_null())
}

fn push(handle: Handle) {
    let before = TOP.replace(handle);
    if !before.is_null() {
        let _forgotten = BELOW.try_with(|below| below.borrow_mut().push(before));
    }
}

fn pop() -> Option<Handle> {
    let popped = top()?;
    let next = BELOW.try_with(|below| below.borrow_mut().pop()).ok().flatten();
    TOP.set(next.unwrap_or(Handle::NULL));
    Some(popped)
}

/// The current context, unless it has the error of a trap.
///
/// # Errors
/// `CUDA_ERROR_INVALID_CONTEXT` if no context is current, `CUDA_ERROR_CONTEXT_IS_DESTROYED`, and the error of
/// a trap.
pub(crate) fn current() -> Result<(&'static Driver, Arc<Context>), Status> {
    let (driver, context) = current_even_struck()?;
    context.check()?;
    Ok((driver, context))
}

/// Fails if the current context has the error of a trap. Succeeds without a context or a driver.
///
/// # Errors
/// The error of the trap.
pub(crate) fn check_current() -> Answer {
    struck().map_or(Ok(()), |(context, _)| context.check())
}

/// The current context and its error, if it has the error of a trap, and whether a call has returned that
/// error.
pub(crate) fn struck() -> Option<(Arc<Context>, (Status, bool))> {
    let (_, context) = current_even_struck().ok()?;
    let error = context.health.error().filter(|_| !context.is_gone())?;
    Some((context, error))
}

fn current_even_struck() -> Result<(&'static Driver, Arc<Context>), Status> {
    let driver = driver()?;
    let handle = top().ok_or(Status::InvalidContext)?;
    let context = driver.contexts.find(handle).ok_or(Status::ContextIsDestroyed)?;
    Ok((driver, context))
}

/// The context of a handle. Null means the current one.
///
/// # Errors
/// As [`current`].
pub(crate) fn named_or_current(handle: Handle) -> Result<(&'static Driver, Arc<Context>), Status> {
    if handle.is_null() {
        return current();
    }
    let driver = driver()?;
    Ok((driver, driver.contexts.find(handle).ok_or(Status::InvalidContext)?))
}

fn create(out: Out<Handle>, flags: c_uint, number: c_int) -> Answer {
    let driver = device(number)?;
    out.check()?;
    if flags & !FLAGS != 0 || flags & 7 == 3 || flags & 7 > 4 {
        return Err(Status::InvalidValue);
    }
    let (handle, _) =
        driver.contexts.insert_with(|handle| Context::new(driver, handle, number, false, flags));
    push(handle);
    out.set(handle)
}

/// Ends a context: stops its work, and frees its resources.
fn end(driver: &Driver, handle: Handle) -> Answer {
    let context = driver.contexts.remove(handle).map_err(|_| Status::InvalidContext)?;
    context.gone.store(true, Ordering::Relaxed);
    context.health.end();
    context.streams.synchronize();
    driver.forget(&context);
    Ok(())
}

fn destroy(handle: Handle) -> Answer {
    let driver = driver()?;
    let context = driver.contexts.find(handle).ok_or(Status::InvalidContext)?;
    if context.primary {
        return Err(Status::InvalidContext);
    }
    if top() == Some(handle) {
        pop();
    }
    end(driver, handle)
}

fn primary(driver: &Driver, number: c_int) -> Result<MutexGuard<'_, Primary>, Status> {
    Ok(driver.device(number)?.primary.lock().unwrap_or_else(PoisonError::into_inner))
}

entries! { ENTRIES;
    /// Creates a context and makes it current.
    fn cuCtxCreate_v2(context: Out<Handle>, flags: c_uint, device: c_int) {
        create(context, flags, device)
    }

    /// Creates a context and makes it current; affinities are not supported.
    fn cuCtxCreate_v3(context: Out<Handle>, _affinities: Pointer, count: c_int, flags: c_uint, device: c_int) {
        if count != 0 {
            return Err(Status::UnsupportedExecAffinity);
        }
        create(context, flags, device)
    }

    /// Creates a context and makes it current; affinities are not supported.
    fn cuCtxCreate_v4(context: Out<Handle>, params: In<[usize; 3]>, flags: c_uint, device: c_int) {
        if !params.is_null() && params.get()?[1] as u32 != 0 {
            return Err(Status::UnsupportedExecAffinity);
        }
        create(context, flags, device)
    }

    /// Destroys a context.
    fn cuCtxDestroy_v2(context: Handle) {
        destroy(context)
    }

    /// Returns the current context. It does not count uses: a context has one.
    fn cuCtxAttach(context: Out<Handle>, flags: c_uint) {
        if flags != 0 {
            return Err(Status::InvalidValue);
        }
        context.set(current()?.1.handle)
    }

    /// Destroys a context.
    fn cuCtxDetach(context: Handle) {
        destroy(context)
    }

    /// Pushes a context onto the thread's stack.
    fn cuCtxPushCurrent_v2(context: Handle) {
        let driver = driver()?;
        driver.contexts.find(context).ok_or(Status::InvalidContext)?;
        push(context);
        Ok(())
    }

    /// Pops the current context from the thread's stack.
    fn cuCtxPopCurrent_v2(context: Out<Handle>) {
        driver()?;
        let popped = pop().ok_or(Status::InvalidContext)?;
        context.set_optional(popped)
    }

    /// Replaces the current context of the thread.
    fn cuCtxSetCurrent(context: Handle) {
        let driver = driver()?;
        if !context.is_null() {
            driver.contexts.find(context).ok_or(Status::InvalidContext)?;
        }
        // Null pops the current context; another handle replaces it.
        if context.is_null() {
            pop();
        } else {
            TOP.set(context);
        }
        Ok(())
    }

    /// The current context of the thread, or null.
    fn cuCtxGetCurrent(context: Out<Handle>) {
        driver()?;
        context.set(top().unwrap_or(Handle::NULL))
    }

    /// The device of the current context.
    fn cuCtxGetDevice(device: Out<c_int>) {
        device.set(current_even_struck()?.1.device)
    }

    /// The device of a context.
    fn cuCtxGetDevice_v2(device: Out<c_int>, context: Handle) {
        device.check()?;
        device.set(named_or_current(context)?.1.device)
    }

    /// The way in which the host waits.
    fn cuCtxGetFlags(flags: Out<c_uint>) {
        flags.set(current()?.1.flags.load(Ordering::Relaxed))
    }

    /// Changes the way in which the host waits.
    fn cuCtxSetFlags(flags: c_uint) {
        if flags & !FLAGS != 0 {
            return Err(Status::InvalidValue);
        }
        current()?.1.flags.store(flags, Ordering::Relaxed);
        Ok(())
    }

    /// The version of the API that a context was created with.
    fn cuCtxGetApiVersion(context: Handle, version: Out<c_uint>) {
        version.check()?;
        named_or_current(context)?;
        version.set(3020)
    }

    /// Waits for all work of the current context.
    fn cuCtxSynchronize() {
        let (_, context) = current()?;
        context.streams.synchronize();
        context.check()
    }

    /// Waits for all work of a context.
    fn cuCtxSynchronize_v2(context: Handle) {
        let (_, context) = named_or_current(context)?;
        context.check()?;
        context.streams.synchronize();
        context.check()
    }

    /// The range of stream priorities, which have no effect.
    fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        current()?;
        least.set_optional(0)?;
        greatest.set_optional(crate::stream::GREATEST_PRIORITY)
    }

    /// A limit of the device.
    fn cuCtxGetLimit(value: Out<usize>, limit: c_int) {
        let (_, context) = current()?;
        value.check()?;
        let index = usize::try_from(limit).map_err(|_| Status::InvalidValue)?;
        let found = context.limits().get(index).copied();
        value.set(found.ok_or(Status::UnsupportedLimit)?)
    }

    /// Sets a limit. Only that of `printf` has an effect, if it is above the default.
    fn cuCtxSetLimit(limit: c_int, value: usize) {
        let (_, context) = current()?;
        let index = usize::try_from(limit).map_err(|_| Status::InvalidValue)?;
        // L2 has no persisting lines.
        if index == PERSISTING && value != 0 {
            return Err(Status::UnsupportedLimit);
        }
        match context.limits().get_mut(index) {
            Some(slot) => {
                *slot = value;
                Ok(())
            }
            None => Err(Status::UnsupportedLimit),
        }
    }

    /// The preferred split of L1 and shared memory, which has no effect.
    fn cuCtxGetCacheConfig(config: Out<c_uint>) {
        config.set(current()?.1.cache.load(Ordering::Relaxed))
    }

    /// Sets the preferred split of L1 and shared memory, which has no effect.
    fn cuCtxSetCacheConfig(config: c_uint) {
        let (_, context) = current()?;
        if config > 3 {
            return Err(Status::InvalidValue);
        }
        context.cache.store(config, Ordering::Relaxed);
        Ok(())
    }

    /// The width of banks of shared memory, which has no effect.
    fn cuCtxGetSharedMemConfig(config: Out<c_uint>) {
        config.set(current()?.1.banks.load(Ordering::Relaxed))
    }

    /// Sets the width of banks of shared memory, which has no effect.
    fn cuCtxSetSharedMemConfig(config: c_uint) {
        let (_, context) = current()?;
        if config > 2 {
            return Err(Status::InvalidValue);
        }
        context.banks.store(config.max(1), Ordering::Relaxed);
        Ok(())
    }

    /// Resets persisting lines of L2. There are none.
    fn cuCtxResetPersistingL2Cache() {
        current().map(|_| ())
    }

    /// Lets kernels of the current context access the memory of another context's device.
    fn cuCtxEnablePeerAccess(peer: Handle, flags: c_uint) {
        let (driver, context) = current()?;
        if flags != 0 {
            return Err(Status::InvalidValue);
        }
        let other = driver.contexts.find(peer).filter(|_| peer != context.handle).ok_or(Status::InvalidContext)?;
        if other.device == context.device {
            return Err(Status::PeerAccessUnsupported);
        }
        {
            let mut peers = context.peers();
            if peers.contains(&peer) {
                return Err(Status::PeerAccessAlreadyEnabled);
            }
            peers.push(peer);
        }
        driver.settle_peers(context.device, other.device);
        Ok(())
    }

    /// Ends the access to the memory of another context's device.
    fn cuCtxDisablePeerAccess(peer: Handle) {
        let (driver, context) = current()?;
        let other = driver.contexts.find(peer).ok_or(Status::InvalidContext)?;
        {
            let mut peers = context.peers();
            let place = peers.iter().position(|known| *known == peer).ok_or(Status::PeerAccessNotEnabled)?;
            peers.remove(place);
        }
        driver.settle_peers(context.device, other.device);
        Ok(())
    }

    /// Retains the primary context of a device, which all its users share.
    fn cuDevicePrimaryCtxRetain(context: Out<Handle>, number: c_int) {
        let driver = device(number)?;
        context.check()?;
        let mut primary = primary(driver, number)?;
        let flags = primary.flags;
        let handle = *primary
            .context
            .get_or_insert_with(|| driver.contexts.insert_with(|handle| Context::new(driver, handle, number, true, flags)).0);
        primary.retained = primary.retained.saturating_add(1);
        context.set(handle)
    }

    /// Releases the primary context. The last release destroys it.
    fn cuDevicePrimaryCtxRelease_v2(number: c_int) {
        let driver = device(number)?;
        let ended = {
            let mut primary = primary(driver, number)?;
            primary.retained = primary.retained.checked_sub(1).ok_or(Status::InvalidContext)?;
            if primary.retained == 0 { primary.context.take() } else { None }
        };
        ended.map_or(Ok(()), |handle| end(driver, handle))
    }

    /// Destroys the primary context, even if it is retained.
    fn cuDevicePrimaryCtxReset_v2(number: c_int) {
        let driver = device(number)?;
        let ended = {
            let mut primary = primary(driver, number)?;
            primary.retained = 0;
            primary.context.take()
        };
        ended.map_or(Ok(()), |handle| end(driver, handle))
    }

    /// Sets the way in which the host waits for the primary context.
    fn cuDevicePrimaryCtxSetFlags_v2(number: c_int, flags: c_uint) {
        let driver = device(number)?;
        if flags & !FLAGS != 0 {
            return Err(Status::InvalidValue);
        }
        let mut primary = primary(driver, number)?;
        primary.flags = flags;
        if let Some(context) = primary.context.and_then(|handle| driver.contexts.find(handle)) {
            context.flags.store(flags, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Whether the primary context exists, and the way in which the host waits for it.
    fn cuDevicePrimaryCtxGetState(number: c_int, flags: Out<c_uint>, active: Out<c_int>) {
        let driver = device(number)?;
        let primary = primary(driver, number)?;
        flags.set(primary.flags)?;
        active.set(c_int::from(primary.context.is_some()))
    }
}
