//! The PTX virtual machine: reads NVIDIA PTX, checks it, and executes it on any CPU.
//!
//! A [`Vm`] is a device: memory, and modules loaded into it. A [`Module`] is accepted PTX; a [`Kernel`] is
//! one of its entries. [`Buffer`]s are arrays in device memory, [`Array`]s are texels of textures and
//! surfaces. A [`Launch`] contains the options of a launch, a [`Report`] its results. An [`Error`] has one of
//! four kinds ([`ErrorKind`]); a trap is a value with its full context.
//!
//! ```
//! use ptxvm::{Arg, Launch, Vm};
//!
//! let ptx = "
//! .version 6.4
//! .target sm_70
//! .address_size 64
//! .visible .entry double_all(.param .u64 data)
//! {
//!     .reg .b32 %r<3>;
//!     .reg .b64 %rd<4>;
//!     ld.param.u64 %rd1, [data];
//!     mov.u32 %r1, %tid.x;
//!     mul.wide.u32 %rd2, %r1, 4;
//!     add.s64 %rd3, %rd1, %rd2;
//!     ld.global.u32 %r2, [%rd3];
//!     add.s32 %r2, %r2, %r2;
//!     st.global.u32 [%rd3], %r2;
//!     ret;
//! }";
//! let vm = Vm::new()?;
//! let kernel = vm.load("double.ptx", ptx)?.kernel("double_all")?;
//! let data = vm.buffer(&[1u32, 2, 3, 4])?;
//! let launch = Launch::new([1, 1, 1], [4, 1, 1]).args(&kernel, &[Arg::buffer(&data)])?;
//! vm.launch(&kernel, &launch)?;
//! assert_eq!(data.read()?, [2, 4, 6, 8]);
//! # Ok::<(), ptxvm::Error>(())
//! ```
//!
//! Invariant: a launch never accesses host memory outside of the device's, whatever the kernel does, except
//! memory lent by `unsafe` calls. A kernel runs only if everything in it is implemented; otherwise the module
//! is refused when it is loaded.
#![deny(unsafe_code)]

mod buffer;
mod cache;
pub mod container;
mod engine;
mod error;
mod forms;
#[allow(unsafe_code, reason = "declares what the host promises; see the module")]
mod host;
mod launch;
mod mapped;
mod memory;
mod module;
mod names;
mod stream;
mod texture;
mod vm;

pub use buffer::{Buffer, Element};
pub use cache::CodeCache;
pub use engine::{
    Compiler, Cpu, Engine, ExitCause, ExitScope, Listing, Ran, SideExits, Source as CodeSource, Target,
    compiler, guard_this_thread,
};
pub use error::{Error, ErrorKind, Rejection};
pub use forms::{Form, LaterForm, Support, isa, isa_later};
pub use launch::{Arg, Launch, Report};
pub use module::{Kernel, Module, ParamLayout, Resources};
pub use names::{demangle, trap_report};
pub use ptx::check::module::{AddressSize, Linkage, Source};
pub use ptx::check::{CheckOptions, Checked, check, link};
use ptx::diag::render::Color;
pub use ptx::diag::{Code, Diagnostic, Severity};
pub use ptx::isa::Geom;
pub use ptx::isa::Sm;
pub use ptx::syntax::format::format;
pub use ptx_exec::mem::{Access, DEVICES, DeviceId, EndingAllocator, Exported, Fill, Pages, attempt};
pub use ptx_exec::texture::{Sampler, Shape};
pub use ptx_exec::trace::{Trace, Traced};
pub use ptx_exec::trap::{FaultKind, Trap};
pub use ptx_exec::watch::HostMistake;
pub use ptx_sanitize::{
    Finding, Kind as FindingKind, Options as SanitizeOptions, OtherAccess, Sanitizer, SuppressionError,
    Suppressions, Tool, journal, json as findings_json, json_parts as finding_json_parts,
    json_summary as findings_json_summary, json_with as findings_json_with, merge as merge_findings,
    text as findings_text, text_of as finding_text, text_summary as findings_summary,
    text_with as findings_text_with,
};
pub use stream::{Mark, Pending, Stream, StreamGroup, StreamKind};
pub use texture::{
    AddrMode, Array, ChannelOrder, ChannelType, Compare, Descriptor, FilterMode, Format, Object,
};
pub use vm::{Options, Vm};

/// The examples of the guide, so that they compile and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct Guide;

/// A diagnostic as text for people: message, place, the underlined line, help. With terminal colours if
/// `colors`.
pub fn render(diagnostic: &Diagnostic, source: &Source, colors: bool) -> String {
    let color = if colors { Color::Always } else { Color::Never };
    rendered(source).human(diagnostic, color)
}

/// A diagnostic as one JSON object on one line.
pub fn render_json(diagnostic: &Diagnostic, source: &Source) -> String {
    rendered(source).json(diagnostic)
}

fn rendered(source: &Source) -> ptx::diag::render::Source<'_> {
    let parts = source.parts.iter().map(|part| (part.start, part.name.as_str()));
    let lines = std::borrow::Cow::Borrowed(source.lines());
    ptx::diag::render::Source::with_parts(&source.text, lines, parts)
}
