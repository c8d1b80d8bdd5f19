//! The driver and its devices.

use crate::attributes::{attribute, properties};
use crate::driver::{Driver, Settings, driver, start};
use crate::entry::entries;
use crate::ffi::{In, Out, Pointer, Text};
use crate::handles::Handle;
use crate::log;
use crate::status::{Answer, Status};
use std::ffi::{c_char, c_int, c_uint};

/// The `CUuuid` of a device: a fixed one for each number.
fn uuid(number: c_int) -> [u8; 16] {
    let mut uuid = *b"ptxvm-device-0\0\0";
    let digits = number.to_string();
    for (place, digit) in uuid[13..].iter_mut().zip(digits.bytes()) {
        *place = digit;
    }
    uuid
}

/// The address of a device on the PCI bus. Each device has a bus of its own.
fn pci(number: c_int) -> String {
    format!("0000:{:02x}:00.0", pci_bus(number))
}

/// The number of a device's bus.
fn pci_bus(number: c_int) -> c_int {
    number + 1
}

/// Domain, bus and device of an address on the PCI bus. A domain or function of 0 may be omitted.
fn place_of(id: &str) -> Option<[u32; 3]> {
    let (id, function) = id.split_once('.').unwrap_or((id, "0"));
    let parts: Vec<_> = id.split(':').map(|part| u32::from_str_radix(part, 16).ok()).collect();
    match (parts.as_slice(), function) {
        ([Some(bus), Some(device)], "0") => Some([0, *bus, *device]),
        ([Some(domain), Some(bus), Some(device)], "0") => Some([*domain, *bus, *device]),
        _ => None,
    }
}

/// Fails unless it is the number of a device.
///
/// # Errors
/// `CUDA_ERROR_INVALID_DEVICE`.
pub(crate) fn check_device(device: c_int) -> Answer {
    driver()?.device(device).map(|_| ())
}

/// Fails unless they are the numbers of two different devices.
fn check_pair(one: c_int, other: c_int) -> Answer {
    check_device(one)?;
    check_device(other)?;
    if one == other { Err(Status::InvalidDevice) } else { Ok(()) }
}

/// The driver, for a function about a device.
pub(crate) fn device(number: c_int) -> Result<&'static Driver, Status> {
    let driver = driver()?;
    driver.device(number)?;
    Ok(driver)
}

/// `CU_DEVICE_ATTRIBUTE_PCI_BUS_ID`
const PCI_BUS: c_int = 33;

fn text_of(status: c_int) -> Result<Status, Status> {
    Status::from_number(status).ok_or(Status::InvalidValue)
}

/// Advises the user once that a library of NVIDIA's asks for undocumented tables. Usually it is the runtime,
/// linked into the program, whose further behavior ptxvm does not control.
fn say_who_asks() {
    static SAID: std::sync::Once = std::sync::Once::new();
    SAID.call_once(|| {
        let program = std::env::current_exe().unwrap_or_default();
        log::say(&format!(
            "ptxvm: `{}` has a library of NVIDIA's inside, or has loaded one, that works with NVIDIA's driver only. If that is the CUDA runtime (nvcc links it into programs): \
             do not strip the program's symbols, so that `ptxvm exec` can put ours in its place, or build it with `-cudart shared`",
            program.display()
        ));
    });
}

entries! { ENTRIES;
    /// Initializes the driver.
    fn cuInit(flags: c_uint) {
        if flags == 0 { start().map(|_| ()) } else { Err(Status::InvalidValue) }
    }

    /// The driver's version.
    fn cuDriverGetVersion(version: Out<c_int>) {
        // This function may be called before `cuInit`.
        version.set(driver().map_or_else(|_| Settings::from_environment(), |driver| driver.settings).version)
    }

    /// The name of an error.
    fn cuGetErrorName(status: c_int, name: Out<Pointer>) {
        name.set(Pointer::NULL)?;
        name.set(Pointer::of_text(text_of(status)?.name()))
    }

    /// The description of an error.
    fn cuGetErrorString(status: c_int, text: Out<Pointer>) {
        text.set(Pointer::NULL)?;
        text.set(Pointer::of_text(text_of(status)?.text()))
    }

    /// Undocumented tables of functions. There are none.
    fn cuGetExportTable(table: Out<Pointer>, id: In<[u8; 16]>) {
        table.set(Pointer::NULL)?;
        let id = id.get()?;
        log::refused(&format!("cuGetExportTable of {id:02x?}"));
        say_who_asks();
        Err(Status::NotFound)
    }

    /// The number of devices.
    fn cuDeviceGetCount(count: Out<c_int>) {
        count.set(driver()?.devices.len() as c_int)
    }

    /// The device with a number.
    fn cuDeviceGet(device: Out<c_int>, ordinal: c_int) {
        driver()?;
        device.check()?;
        check_device(ordinal)?;
        device.set(ordinal)
    }

    /// The name of a device.
    fn cuDeviceGetName(name: Out<c_char>, room: c_int, number: c_int) {
        let driver = device(number)?;
        let (major, minor) = (driver.settings.capability / 10, driver.settings.capability % 10);
        name.set_text(&format!("ptxvm virtual device, compute capability {major}.{minor}"), usize::try_from(room).unwrap_or(0))
    }

    /// The identifier of a device, of 16 bytes.
    fn cuDeviceGetUuid(uuid: Out<[u8; 16]>, number: c_int) {
        device(number)?;
        uuid.set(self::uuid(number))
    }

    /// The identifier of a device, of 16 bytes.
    fn cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, number: c_int) {
        device(number)?;
        uuid.set(self::uuid(number))
    }

    /// The identifier of a device for graphics, which exists only on Windows.
    fn cuDeviceGetLuid(_luid: Out<c_char>, _mask: Out<c_uint>, number: c_int) {
        device(number)?;
        Err(Status::NotSupported)
    }

    /// The memory of a device in bytes.
    fn cuDeviceTotalMem_v2(bytes: Out<usize>, number: c_int) {
        bytes.set(device(number)?.memory_total as usize)
    }

    /// An attribute of a device.
    fn cuDeviceGetAttribute(value: Out<c_int>, number: c_int, of: c_int) {
        let driver = device(of)?;
        value.check()?;
        if number == PCI_BUS {
            return value.set(pci_bus(of));
        }
        value.set(attribute(number, driver.settings.capability).ok_or(Status::InvalidValue)?)
    }

    /// Several attributes of a device, for programs of CUDA 1.
    fn cuDeviceGetProperties(all: Out<[c_int; 14]>, number: c_int) {
        // The order of the structure differs from the numbers of the attributes.
        let [threads, x, y, z, gx, gy, gz, shared, constant, warp, pitch, registers, clock, align] =
            properties(device(number)?.settings.capability);
        all.set([threads, x, y, z, gx, gy, gz, shared, constant, warp, pitch, registers, clock, align])
    }

    /// The compute capability of a device.
    fn cuDeviceComputeCapability(major: Out<c_int>, minor: Out<c_int>, number: c_int) {
        let capability = device(number)?.settings.capability;
        minor.check()?;
        major.set(capability / 10)?;
        minor.set(capability % 10)
    }

    /// The address of a device on the PCI bus.
    fn cuDeviceGetPCIBusId(id: Out<c_char>, room: c_int, number: c_int) {
        device(number)?;
        id.set_text(&pci(number), usize::try_from(room).unwrap_or(0))
    }

    /// The device with an address on the PCI bus.
    fn cuDeviceGetByPCIBusId(number: Out<c_int>, id: Text) {
        let driver = driver()?;
        number.check()?;
        let place = place_of(&id.get()?).ok_or(Status::InvalidDevice)?;
        let is_there = |number: &c_int| place == [0, pci_bus(*number) as u32, 0];
        number.set((0..driver.devices.len() as c_int).find(is_there).ok_or(Status::InvalidDevice)?)
    }

    /// Whether a device can access the memory of another. Each can access that of all others.
    fn cuDeviceCanAccessPeer(can: Out<c_int>, one: c_int, other: c_int) {
        device(one)?;
        check_device(other)?;
        can.set(c_int::from(one != other))
    }

    /// An attribute of the link between two devices.
    fn cuDeviceGetP2PAttribute(value: Out<c_int>, attribute: c_int, one: c_int, other: c_int) {
        driver()?;
        value.check()?;
        check_pair(one, other)?;
        value.set(match attribute {
            // The best performance rank, and atomic operations that are all native.
            1 | 5 => 0,
            // Access, atomic operations, arrays.
            2..=4 => 1,
            _ => return Err(Status::InvalidValue),
        })
    }

    /// Whether contexts can be restricted to some multiprocessors.
    fn cuDeviceGetExecAffinitySupport(value: Out<c_int>, kind: c_int, number: c_int) {
        device(number)?;
        if kind == 0 { value.set(0) } else { Err(Status::InvalidValue) }
    }

    /// The largest width of a linear texture.
    fn cuDeviceGetTexture1DLinearMaxWidth(width: Out<usize>, _format: c_int, channels: c_uint, number: c_int) {
        device(number)?;
        if !matches!(channels, 1 | 2 | 4) {
            return Err(Status::InvalidValue);
        }
        width.set(1 << 28)
    }

    /// Starts profiling. It has no effect, as on a device without an attached profiler.
    fn cuProfilerStart() {
        crate::context::current().map(|_| ())
    }

    /// Stops profiling. It has no effect.
    fn cuProfilerStop() {
        crate::context::current().map(|_| ())
    }

    /// Prepares profiling, which later drivers do not support.
    fn cuProfilerInitialize(_config: Text, _output: Text, _mode: c_int) {
        Err(Status::NotSupported)
    }

    /// The unique number of a context.
    fn cuCtxGetId(context: Handle, id: Out<u64>) {
        id.check()?;
        id.set(crate::context::named_or_current(context)?.1.handle.0 as u64)
    }
}
