//! Conditional nodes: bodies that run once, repeatedly, or one of several, by a value that kernels set.
//!
//! The handle of a condition is the address of its value in device memory. `cudaGraphSetConditional` of the
//! device library stores the value there.
//!
//! Invariant: a body runs at its node's turn, in the launch's stream. A loop ends when its context does.

use super::node::Work;
use super::{Graph, Handle};
use crate::context::Context;
use crate::driver::{Driver, driver};
use crate::entry::entries;
use crate::ffi::{In, Out, Pointer};
use crate::memory::{Kind, allocate};
use crate::status::{Answer, Status};
use std::ffi::{c_int, c_uint};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// `CU_GRAPH_COND_ASSIGN_DEFAULT`
const ASSIGN_DEFAULT: c_uint = 1;
/// `CU_GRAPH_COND_TYPE_IF`, `..._WHILE`, `..._SWITCH`
const IF: c_int = 0;
const WHILE: c_int = 1;
const SWITCH: c_int = 2;
/// Most bodies of a node. Chosen.
const BODIES_MAX: c_uint = 4096;

/// The value of a condition, in device memory.
pub(super) struct Word {
    driver: &'static Driver,
    address: u64,
    /// The unique number of its allocation, which may be freed earlier, with its context.
    number: u64,
    /// The value at the start of each launch.
    default: Option<u32>,
}

impl Word {
    fn new(driver: &'static Driver, context: &Arc<Context>, default: Option<u32>) -> Result<Self, Status> {
        let address = allocate(driver, context, 4, Kind::Graph)?;
        let (_, block) = driver.blocks.at(address).ok_or(Status::InvalidValue)?;
        let word = Self { driver, address, number: block.number(), default };
        word.start()?;
        Ok(word)
    }

    /// Sets the value at the start of a launch.
    pub(super) fn start(&self) -> Answer {
        match self.default {
            Some(value) => {
                self.driver.vm.write(self.address, &value.to_le_bytes()).map_err(|_| Status::IllegalAddress)
            }
            None => Ok(()),
        }
    }

    fn get(&self) -> Result<u32, Status> {
        let mut value = [0; 4];
        self.driver.vm.read(self.address, &mut value).map_err(|_| Status::IllegalAddress)?;
        Ok(u32::from_le_bytes(value))
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        if self.driver.blocks.take_numbered(self.address, self.number).is_some() {
            let _freed = self.driver.vm.free(self.address);
        }
    }
}

/// A conditional node.
pub(crate) struct Condition {
    word: Arc<Word>,
    kind: c_int,
    bodies: Vec<Arc<Graph>>,
    /// The handles of the bodies, in memory that programs read.
    shown: Box<[AtomicUsize]>,
}

impl Condition {
    pub(super) fn word(&self) -> &Arc<Word> {
        &self.word
    }

    pub(super) fn bodies(&self) -> &[Arc<Graph>] {
        &self.bodies
    }

    /// Runs the bodies that the value selects. `run` runs one.
    pub(super) fn run(&self, context: &Context, run: impl Fn(usize) -> Answer) -> Answer {
        let value = self.word.get()?;
        match (self.kind, value) {
            (WHILE, _) => {
                while self.word.get()? != 0 {
                    context.check_within()?;
                    run(0)?;
                }
                Ok(())
            }
            (IF, 0) if self.bodies.len() > 1 => run(1),
            (IF, 0) => Ok(()),
            (IF, _) => run(0),
            _ if (value as usize) < self.bodies.len() => run(value as usize),
            _ => Ok(()),
        }
    }
}

/// `CUDA_CONDITIONAL_NODE_PARAMS`
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct ConditionParams {
    handle: u64,
    kind: c_int,
    size: c_uint,
    graphs: Pointer,
}

impl ConditionParams {
    /// The parameters of a node.
    pub(super) fn of(node: &Condition) -> Self {
        let size = node.bodies.len() as c_uint;
        let graphs = Pointer::of_values(&node.shown);
        Self { handle: node.word.address, kind: node.kind, size, graphs }
    }

    /// Creates the node and its bodies in a graph, and writes the bodies' handles for the program.
    pub(super) fn make(driver: &'static Driver, graph: &Graph, given: Out<Self>) -> Result<Work, Status> {
        let params = In::from(given).get()?;
        let word = graph.words().iter().find(|word| word.address == params.handle).cloned();
        let word = word.ok_or(Status::InvalidValue)?;
        let most = match params.kind {
            IF => 2,
            WHILE => 1,
            SWITCH => BODIES_MAX,
            _ => return Err(Status::InvalidValue),
        };
        if !(1..=most).contains(&params.size) {
            return Err(Status::InvalidValue);
        }
        let make = || Graph::make_with(driver, crate::user_object::Held::default(), true).1;
        let bodies: Vec<Arc<Graph>> = (0..params.size).map(|_| make()).collect();
        let shown: Box<[AtomicUsize]> = bodies.iter().map(|body| AtomicUsize::new(body.handle.0)).collect();
        let condition = Condition { word, kind: params.kind, bodies, shown };
        given.set(Self { graphs: Pointer::of_values(&condition.shown), ..params })?;
        Ok(Work::Condition(Arc::new(condition)))
    }
}

entries! { ENTRIES;
    /// Creates the value that decides which bodies of a conditional node run.
    fn cuGraphConditionalHandleCreate(
        handle: Out<u64>, graph: Handle, context: Handle, default: c_uint, flags: c_uint,
    ) {
        let driver = driver()?;
        handle.check()?;
        let graph = driver.graphs.get(graph)?;
        let (_, context) = crate::context::named_or_current(context)?;
        if flags & !ASSIGN_DEFAULT != 0 {
            return Err(Status::InvalidValue);
        }
        let word = Arc::new(Word::new(driver, &context, (flags & ASSIGN_DEFAULT != 0).then_some(default))?);
        let address = word.address;
        graph.words().push(word);
        handle.set(address)
    }
}
