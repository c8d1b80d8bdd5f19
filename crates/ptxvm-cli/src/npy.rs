//! Arrays in `.npy` files, as raw bytes with their element type and shape.
//!
//! Invariant: `bytes.len()` is the element size times the product of the shape. Byte order is little-endian, as on the
//! device; big-endian and object arrays are refused. The order of the file (C or Fortran) is kept.

use crate::UsageError;
use npyz::WriterBuilder as _;
use std::io::Read as _;
use std::path::Path;

/// An array.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    /// Element type, as numpy's type string: `<f4`.
    pub(crate) dtype: String,
    /// Extents.
    pub(crate) shape: Vec<u64>,
    /// Fortran order.
    fortran: bool,
    /// Contents.
    pub(crate) bytes: Vec<u8>,
}

impl Array {
    /// An array of zeros.
    pub(crate) fn zeros(dtype: &str, shape: Vec<u64>) -> Result<Self, UsageError> {
        let (dtype, size) = dtype_of(dtype)?;
        let count = shape.iter().try_fold(size, |n, extent| n.checked_mul(*extent));
        let count = count.filter(|n| *n <= 1 << 40).ok_or("an array of more than 1 TiB")?;
        Ok(Self { dtype, shape, fortran: false, bytes: vec![0; count as usize] })
    }

    /// Whether the last axis varies fastest.
    pub(crate) fn is_c_order(&self) -> bool {
        !self.fortran || self.shape.iter().filter(|extent| **extent > 1).count() < 2
    }

    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self, UsageError> {
        let fail = |why: String| UsageError(format!("cannot read `{}`: {why}", path.display()));
        let file = std::fs::File::open(path).map_err(|e| fail(e.to_string()))?;
        let mut reader = std::io::BufReader::new(file);
        let header =
            npyz::NpyHeader::from_reader(&mut reader).map_err(|e| fail(format!("not a .npy file: {e}")))?;
        let npyz::DType::Plain(ty) = header.dtype() else {
            return Err(fail("structured arrays are not supported".to_owned()));
        };
        let (dtype, size) = dtype_of(&ty.to_string()).map_err(|e| fail(e.0))?;
        let count = header.shape().iter().try_fold(size, |n, extent| n.checked_mul(*extent));
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map_err(|e| fail(e.to_string()))?;
        if count != Some(bytes.len() as u64) {
            return Err(fail(format!(
                "{} bytes of data do not fit the shape {:?}",
                bytes.len(),
                header.shape()
            )));
        }
        Ok(Self {
            dtype,
            shape: header.shape().to_vec(),
            fortran: header.order() == npyz::Order::Fortran,
            bytes,
        })
    }

    /// Writes a file.
    pub(crate) fn write(&self, path: &Path) -> Result<(), UsageError> {
        let fail = |why: String| UsageError(format!("cannot write `{}`: {why}", path.display()));
        let ty = self.dtype.parse().map_err(|e| fail(format!("{e}")))?;
        let order = if self.fortran { npyz::Order::Fortran } else { npyz::Order::C };
        let builder = npyz::WriteOptions::new_header_only()
            .dtype(npyz::DType::Plain(ty))
            .shape(&self.shape)
            .order(order);
        crate::output::write_file(path, |out| builder.writer(out).write_header_only()?.write_all(&self.bytes))
    }
}

/// The type string and element size of a type, spelled as numpy does: `f4`, `<f4`, `float32`, `bool`.
fn dtype_of(name: &str) -> Result<(String, u64), UsageError> {
    let short = match name {
        "float16" => "f2",
        "float32" => "f4",
        "float64" => "f8",
        "int8" => "i1",
        "int16" => "i2",
        "int32" => "i4",
        "int64" => "i8",
        "uint8" => "u1",
        "uint16" => "u2",
        "uint32" => "u4",
        "uint64" => "u8",
        "complex64" => "c8",
        "complex128" => "c16",
        "bool" | "?" => "b1",
        other => other.strip_prefix(['<', '|', '=']).unwrap_or(other),
    };
    let size = match short {
        "i1" | "u1" | "b1" => 1,
        "f2" | "i2" | "u2" => 2,
        "f4" | "i4" | "u4" => 4,
        "f8" | "i8" | "u8" | "c8" => 8,
        "c16" => 16,
        _ => {
            return Err(format!(
                "`{name}` is not an element type that ptxvm takes (f2 f4 f8 i1..i8 u1..u8 b1 c8 c16)"
            )
            .into());
        }
    };
    let order = if size == 1 { '|' } else { '<' };
    Ok((format!("{order}{short}"), size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_reads_back_as_written() {
        let path = std::env::temp_dir().join(format!("ptxvm-npy-{}.npy", std::process::id()));
        for (dtype, shape) in [("f4", vec![3, 5]), ("uint8", vec![7]), ("<i8", vec![]), ("bool", vec![0, 4])]
        {
            let mut array = Array::zeros(dtype, shape).unwrap();
            for (i, byte) in array.bytes.iter_mut().enumerate() {
                *byte = i as u8;
            }
            array.write(&path).unwrap();
            let back = Array::read(&path).unwrap();
            assert_eq!((back.dtype, back.shape, back.bytes), (array.dtype, array.shape, array.bytes));
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn numpy_names_and_sizes() {
        assert_eq!(dtype_of("float32").unwrap(), ("<f4".to_owned(), 4));
        assert_eq!(dtype_of("u1").unwrap(), ("|u1".to_owned(), 1));
        assert_eq!(dtype_of("|b1").unwrap(), ("|b1".to_owned(), 1));
        assert!(dtype_of(">f4").is_err());
        assert!(dtype_of("O").is_err());
    }

    #[test]
    fn a_file_that_is_no_array_is_refused() {
        let path = std::env::temp_dir().join(format!("ptxvm-not-npy-{}.npy", std::process::id()));
        for wrong in [&b""[..], b"\x93NUMPY", b"hello, this is not an array at all, just text"] {
            std::fs::write(&path, wrong).unwrap();
            assert!(Array::read(&path).is_err());
        }
        std::fs::remove_file(path).unwrap();
    }
}
