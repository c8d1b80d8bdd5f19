//! Options of loading and linking (`CUjit_option`): of interest are the buffers for messages, and how many registers a thread may have.
//!
//! Invariant: a buffer is written up to its size, with a final zero, and its size option becomes what was written.

use crate::ffi::{In, Pointer};
use crate::status::Status;
use std::ffi::{c_char, c_int, c_uint};

const MAX_REGISTERS: c_int = 0;
const WALL_TIME: c_int = 2;
const INFO_LOG: c_int = 3;
const INFO_LOG_BYTES: c_int = 4;
const ERROR_LOG: c_int = 5;
const ERROR_LOG_BYTES: c_int = 6;
/// How many options the public header has.
const COUNT: c_int = 36;
/// Most options of a call. Chosen: each of them a few times.
const COUNT_MAX: usize = 256;

/// A buffer for messages.
#[derive(Clone, Copy)]
struct Log {
    buffer: Pointer,
    room: usize,
    /// Where the size option is, to be set to what was written.
    written: Pointer,
    /// What was written so far.
    used: usize,
}

/// The options of a call.
#[derive(Clone, Copy, Default)]
pub(crate) struct JitOptions {
    info: Option<Log>,
    error: Option<Log>,
    wall_time: Option<Pointer>,
    /// What counts of registers are reported to be at most.
    pub(crate) max_registers: Option<u32>,
}

impl JitOptions {
    /// Reads the two arrays that C gives.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for null arrays with a count, and for numbers that are no option.
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
        // Options of 32 bits are cast to pointers by the caller.
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

    /// Clears the buffers, as a call that says nothing leaves them.
    pub(crate) fn begin(&mut self) {
        for log in [&mut self.info, &mut self.error].into_iter().flatten() {
            let _unwritable = log.buffer.place::<c_char>().set(0);
            let _unwritable = log.written.place::<usize>().set(0);
        }
    }

    /// Lowers what counts of registers are reported to be at most.
    pub(crate) fn limit_registers(&mut self, most: Option<u32>) {
        self.max_registers = self.max_registers.into_iter().chain(most).min();
    }

    /// Says what is wrong.
    pub(crate) fn error(&mut self, text: &str) {
        append(self.error.as_mut(), text);
    }

    /// Says what is worth knowing.
    pub(crate) fn info(&mut self, text: &str) {
        append(self.info.as_mut(), text);
    }

    /// Whether somebody will read what is wrong.
    pub(crate) fn has_error_log(&self) -> bool {
        self.error.is_some()
    }

    /// Says how long it took.
    pub(crate) fn took(&self, time: std::time::Duration) {
        if let Some(out) = self.wall_time {
            let _unwritable = out.place::<f32>().set(time.as_secs_f32() * 1000.0);
        }
    }
}

fn append(log: Option<&mut Log>, text: &str) {
    let Some(log) = log else { return };
    // The last byte is for the zero.
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
