//! Arguments and bindings, loaded to the device for a launch.
//!
//! Invariant: output files are written only by [`Bound::write_back`], after the launches.

use crate::UsageError;
use crate::arg::Arg;
use crate::npy::Array;
use crate::object::{Kind, Object, Source, Texels};
use ptxvm::{Buffer, Descriptor, Kernel, Module, Vm};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The arguments and bindings of a launch, as written.
#[derive(Debug, Default)]
pub(crate) struct Given {
    /// `--arg`, in order.
    pub(crate) args: Vec<Arg>,
    /// `--bind NAME=OBJECT`
    pub(crate) binds: Vec<(String, Object)>,
    /// `--texels NAME=SOURCE,FIELD=VALUE,...`
    pub(crate) texels: Vec<(String, Object)>,
}

impl Given {
    /// Parses one `--bind`.
    pub(crate) fn bind(&mut self, text: &str) -> Result<(), UsageError> {
        let (name, rest) =
            text.split_once('=').ok_or_else(|| format!("`--bind {text}`: expected `NAME=OBJECT`"))?;
        let Ok(Arg::Object(object)) = Arg::parse(rest).map_err(|e| e.0) else {
            // The error of an object's text is more specific.
            Arg::parse(rest)?;
            return Err(format!("`--bind {text}`: expected `tex:`, `surf:` or `sampler:`").into());
        };
        self.binds.push((name.to_owned(), *object));
        Ok(())
    }

    /// Parses one `--texels`.
    pub(crate) fn texels(&mut self, text: &str) -> Result<(), UsageError> {
        let (name, rest) = text
            .split_once('=')
            .ok_or_else(|| format!("`--texels {text}`: expected `NAME=SOURCE,FIELD=VALUE,...`"))?;
        let texels = Object::parse(Kind::Texels, rest).map_err(|e| format!("`--texels {text}`: {e}"))?;
        self.texels.push((name.to_owned(), texels));
        Ok(())
    }
}

/// Arguments, ready to launch.
#[derive(Default)]
pub(crate) struct Bound {
    /// The parameter buffer.
    pub(crate) params: Vec<u8>,
    /// Warnings about arguments that fit but look wrong.
    pub(crate) warnings: Vec<String>,
    /// The buffers to write back, and their files.
    outputs: Vec<(Buffer<u8>, Array, PathBuf)>,
    /// Named texels, and those of a single object.
    shared: BTreeMap<String, Texels>,
    own: Vec<Texels>,
    /// Buffers without output, and handles; they live as long as the launches.
    _inputs: Vec<Buffer<u8>>,
    _objects: Vec<ptxvm::Object>,
}

impl Bound {
    /// Loads everything to the device: the arguments into the parameter buffer of the kernel, the bindings to
    /// the module's variables.
    pub(crate) fn new(vm: &Vm, module: &Module, kernel: &Kernel, given: &Given) -> Result<Self, UsageError> {
        let mut bound = Bound::default();
        for (name, object) in &given.texels {
            let label = format!("texels `{name}`");
            let Some(Source::Own(source)) = &object.source else {
                return Err(format!("{label} must have a source of their own").into());
            };
            let texels = Texels::load(vm, &label, source, object)?;
            if bound.shared.insert(name.clone(), texels).is_some() {
                return Err(format!("{label} are given twice").into());
            }
        }
        let mut names = BTreeSet::new();
        for (name, object) in &given.binds {
            if !names.insert(name) {
                return Err(format!("`{name}` is bound twice").into());
            }
            let descriptor = bound.descriptor(vm, &format!("`{name}`"), object)?;
            module.bind(name, &descriptor)?;
        }
        bound.fill_params(vm, kernel, &given.args)?;
        Ok(bound)
    }

    fn descriptor(&mut self, vm: &Vm, label: &str, object: &Object) -> Result<Descriptor, UsageError> {
        match &object.source {
            None => object.descriptor(None),
            Some(Source::Shared(name)) => match self.shared.get(name) {
                Some(texels) => object.descriptor(Some(texels)),
                None => Err(format!("{label}: no `--texels {name}=...` is given").into()),
            },
            Some(Source::Own(source)) => {
                let texels = Texels::load(vm, label, source, object)?;
                let descriptor = object.descriptor(Some(&texels));
                self.own.push(texels);
                descriptor
            }
        }
    }

    fn fill_params(&mut self, vm: &Vm, kernel: &Kernel, args: &[Arg]) -> Result<(), UsageError> {
        let slots = kernel.params();
        if slots.len() != args.len() {
            let (name, wants, has) = (kernel.name(), slots.len(), args.len());
            return Err(format!(
                "kernel `{name}` has {}, but {has} {} given with --arg",
                counted(wants, "parameter"),
                if has == 1 { "was" } else { "were" }
            )
            .into());
        }
        self.params = vec![0; kernel.param_bytes()];
        for (index, (slot, arg)) in slots.iter().zip(args).enumerate() {
            let label = format!("argument {} (`{}`)", index + 1, slot.name);
            let bytes = self.argument(vm, &label, arg, slot.bytes)?;
            if bytes.len() != slot.bytes {
                let ty = slot.scalar_type().map_or(String::new(), |ty| format!(" (`.{ty}`)"));
                let (has, wants) = (counted(bytes.len(), "byte"), counted(slot.bytes, "byte"));
                return Err(format!("{label} has {has}, but the parameter has {wants}{ty}").into());
            }
            if let Some(warning) = kinds_differ(&label, arg, slot.scalar_type()) {
                self.warnings.push(warning);
            }
            self.params[slot.offset..slot.offset + slot.bytes].copy_from_slice(&bytes);
        }
        Ok(())
    }

    /// The bytes of an argument; `width` is the parameter's.
    fn argument(&mut self, vm: &Vm, label: &str, arg: &Arg, width: usize) -> Result<Vec<u8>, UsageError> {
        Ok(match arg {
            Arg::Scalar { bytes, .. } | Arg::Bytes(bytes) => bytes.clone(),
            Arg::In(file) => {
                let array = Array::read(file)?;
                self.input(filled(vm, label, &array)?, width)
            }
            Arg::InOut(from, to) => {
                let mut array = Array::read(from)?;
                let buffer = filled(vm, label, &array)?;
                array.bytes = Vec::new();
                self.output(buffer, array, to, width)
            }
            Arg::Out { dtype, shape, file } => {
                let array =
                    Array::zeros(dtype, shape.clone()).map_err(|e| format!("{label}: {e}", e = e.0))?;
                let buffer = zeros(vm, label, array.len())?;
                self.output(buffer, array, file, width)
            }
            Arg::Zeros(bytes) => self.input(zeros(vm, label, *bytes)?, width),
            Arg::Object(object) => {
                let descriptor = self.descriptor(vm, label, object)?;
                let object = vm.object(label, descriptor)?;
                let handle = object.handle();
                self._objects.push(object);
                pointer(handle, width)
            }
        })
    }

    fn input(&mut self, buffer: Buffer<u8>, width: usize) -> Vec<u8> {
        let address = buffer.address();
        self._inputs.push(buffer);
        pointer(address, width)
    }

    fn output(&mut self, buffer: Buffer<u8>, array: Array, file: &std::path::Path, width: usize) -> Vec<u8> {
        let address = buffer.address();
        self.outputs.push((buffer, array, file.to_owned()));
        pointer(address, width)
    }

    /// Writes the output files.
    pub(crate) fn write_back(self, vm: &Vm) -> Result<(), UsageError> {
        for (buffer, array, file) in self.outputs {
            array.write(&file, |out| copy_out(vm, &buffer, out))?;
        }
        self.shared.into_values().chain(self.own).try_for_each(|texels| texels.write_back(vm))
    }
}

/// `1 parameter`, `2 parameters`
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The warning about an integer for a floating-point parameter of the same width, or the reverse: its bits
/// are passed unchanged. Types `b...` fit everything of their width.
fn kinds_differ(label: &str, arg: &Arg, ty: Option<&str>) -> Option<String> {
    let (Arg::Scalar { ty: given, bytes }, Some(ty)) = (arg, ty) else { return None };
    let untyped = |ty: &str| ty.starts_with('b') && !ty.starts_with("bf");
    let is_float = |ty: &str| ty.starts_with('f') || ty.starts_with("bf");
    if untyped(given) || untyped(ty) || is_float(given) == is_float(ty) {
        return None;
    }
    let bits: String = bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
    Some(format!(
        "ptxvm: warning: {label} is given as `{given}`, but the parameter has type `.{ty}`: the bits 0x{bits} are passed as they are; \
         `{ty}:VALUE` converts the value, `b{}:0x{bits}` means the bits\n",
        bytes.len() * 8
    ))
}

/// New device memory; `label` is for errors and traps.
fn zeros(vm: &Vm, label: &str, bytes: u64) -> Result<Buffer<u8>, UsageError> {
    vm.named_zeros(label, bytes).map_err(|e| UsageError(format!("{label}: {e}")))
}

/// Device memory with the contents of an array.
fn filled(vm: &Vm, label: &str, array: &Array) -> Result<Buffer<u8>, UsageError> {
    let buffer = zeros(vm, label, array.len())?;
    buffer.write(&array.bytes)?;
    Ok(buffer)
}

/// Copies device memory to the output in pieces, so that the host needs little memory.
fn copy_out(vm: &Vm, buffer: &Buffer<u8>, out: &mut dyn std::io::Write) -> Result<(), UsageError> {
    let mut piece = [0; 1 << 14];
    for start in (0..buffer.len()).step_by(piece.len()) {
        let length = piece.len().min(buffer.len() - start);
        vm.read(buffer.address() + start as u64, &mut piece[..length])?;
        out.write_all(&piece[..length])?;
    }
    Ok(())
}

/// The bytes of an address for a parameter of that width.
fn pointer(address: u64, bytes: usize) -> Vec<u8> {
    let width = if bytes == 4 && u32::try_from(address).is_ok() { 4 } else { 8 };
    address.to_le_bytes()[..width].to_vec()
}
