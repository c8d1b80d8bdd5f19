//! Options of loading and linking (`CUjit_option`). Those with an effect are the buffers for messages and the
//! limit of registers per thread.
//!
//! Invariant: at most a buffer's size is written, including a final zero, and the size option is set to the
//! number of bytes written.

use crate::ffi::{In, Pointer};
use crate::status::Status;
use std::ffi::{c_char, c_int, c_uint};

const MAX_REGISTERS: c_int = 0;
const WALL_TIME: c_int = 2;
const INFO_LOG: c_int = 3;
const INFO_LOG_BYTES: c_int = 4;
const ERROR_LOG: c_int = 5;
const ERROR_LOG_BYTES: c_int = 6;
/// The number of options in the public header.
const COUNT: c_int = 36;
/// Most options of a call. Chosen: each option a few times.
const COUNT_MAX: usize = 256;

/// A buffer for messages.
#[derive(Clone, Copy)]
struct Log {
    buffer: Pointer,
    room: usize,
    /// The address of the size option, which receives the number of bytes written.
    written: Pointer,
    /// The number of bytes written so far.
    used: usize,
}

/// The options of a call.
#[derive(Clone, Copy, Default)]
pub(crate) struct JitOptions {
    info: Option<Log>,
    error: Option<Log>,
    wall_time: Option<Pointer>,
    /// The upper limit of reported register counts.
    pub(crate) max_registers: Option<u32>,
}

impl JitOptions {
    /// Reads the two arrays from C.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for null arrays with a count, and for unknown options.
    pub(crate) fn read(count: c_uint, options: In<c_int>, values: Pointer) -> Result<Self, Status> {
        let count = count as usize;
        if count == 0 {
            return Ok(Self::default());
        }
        if count > COUNT_MAX {
            return Err(Status::InvalidValue);
        }
        let options = options.all(count)?;
        let given = values.values::<Pointer>().all(count)?;
        if options.iter().any(|option| !(0..COUNT).contains(option)) {
            return Err(Status::InvalidValue);
        }
        let place = |option| options.iter().position(|known| *known == option);
        // The caller casts 32-bit options to pointers.
        let log = |buffer, bytes| {
            let (buffer, bytes) = (place(buffer)?, place(bytes)?);
            let room = given[bytes].address() as u32 as usize;
            let written = values.offset(bytes * size_of::<usize>());
            (!given[buffer].is_null() && room > 0).then_some(Log {
                buffer: given[buffer],
                room,
                written,
                used: 0,
            })
        };
        Ok(Self {
            info: log(INFO_LOG, INFO_LOG_BYTES),
            error: log(ERROR_LOG, ERROR_LOG_BYTES),
            max_registers: place(MAX_REGISTERS).map(|at| given[at].address() as u32).filter(|most| *most > 0),
            wall_time: place(WALL_TIME).map(|at| values.offset(at * size_of::<usize>())),
        })
    }

    /// Clears the buffers, for calls without messages.
    pub(crate) fn begin(&mut self) {
        for log in [&mut self.info, &mut self.error].into_iter().flatten() {
            let _unwritable = log.buffer.place::<c_char>().set(0);
            let _unwritable = log.written.place::<usize>().set(0);
        }
    }

    /// Lowers the upper limit of reported register counts.
    pub(crate) fn limit_registers(&mut self, most: Option<u32>) {
        self.max_registers = self.max_registers.into_iter().chain(most).min();
    }

    /// Adds an error message.
    pub(crate) fn error(&mut self, text: &str) {
        append(self.error.as_mut(), text);
    }

    /// Adds an information message.
    pub(crate) fn info(&mut self, text: &str) {
        append(self.info.as_mut(), text);
    }

    /// Whether the program passed a buffer for errors.
    pub(crate) fn has_error_log(&self) -> bool {
        self.error.is_some()
    }

    /// Writes the time that the call took.
    pub(crate) fn took(&self, time: std::time::Duration) {
        if let Some(out) = self.wall_time {
            let _unwritable = out.place::<f32>().set(time.as_secs_f32() * 1000.0);
        }
    }
}

fn append(log: Option<&mut Log>, text: &str) {
    let Some(log) = log else { return };
    // The last byte is reserved for the final zero.
    let room = (log.room - log.used).saturating_sub(1);
    let mut end = text.len().min(room);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let written = log.buffer.place::<c_char>().offset(log.used).set_text(&text[..end], end + 1);
    if written.is_ok() {
        log.used += end;
        let _unwritable = log.written.place::<usize>().set(log.used);
    }
}
