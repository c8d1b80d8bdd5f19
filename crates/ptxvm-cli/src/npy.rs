//! Arrays in `.npy` files, as raw bytes with their element type and shape.
//!
//! Invariants: [`Array::bytes`] is empty in a new array, which is zero, and otherwise has [`Array::len`]
//! bytes. Byte order is little-endian, as on the device; big-endian and object arrays are refused. The order
//! of the file (C or Fortran) is kept. Memory use depends on the size of a file, not on its header.

mod header;

use crate::UsageError;
use header::{Header, MAX_AXES};
use std::io::{Read, Write};
use std::path::Path;

/// Most bytes of an array.
const MAX_BYTES: u64 = 1 << 40;

/// An array.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    /// Element type, as numpy's type string: `<f4`.
    pub(crate) dtype: String,
    /// Extents.
    pub(crate) shape: Vec<u64>,
    /// Fortran order.
    fortran: bool,
    /// Bytes of the whole array.
    len: u64,
    /// Contents; of an array of zeros, none.
    pub(crate) bytes: Vec<u8>,
}

impl Array {
    /// An array of zeros.
    pub(crate) fn zeros(dtype: &str, shape: Vec<u64>) -> Result<Self, UsageError> {
        let (dtype, size) = dtype_of(dtype)?;
        if shape.len() > MAX_AXES {
            return Err(format!("an array of {} axes is over the limit of {MAX_AXES}", shape.len()).into());
        }
        let count = shape.iter().try_fold(size, |n, extent| n.checked_mul(*extent));
        let len = count.filter(|n| *n <= MAX_BYTES).ok_or("an array of more than 1 TiB")?;
        Ok(Self { dtype, shape, fortran: false, len, bytes: Vec::new() })
    }

    /// Bytes of the whole array.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Whether the last axis varies fastest.
    pub(crate) fn is_c_order(&self) -> bool {
        !self.fortran || self.shape.iter().filter(|extent| **extent > 1).count() < 2
    }

    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self, UsageError> {
        let fail = |why: String| UsageError(format!("cannot read `{}`: {why}", path.display()));
        let file = std::fs::File::open(path).map_err(|e| fail(e.to_string()))?;
        Self::read_from(&mut std::io::BufReader::new(file)).map_err(fail)
    }

    /// Reads the contents of a file.
    pub(crate) fn read_from(reader: &mut impl Read) -> Result<Self, String> {
        let Header { dtype, fortran, shape } = Header::read(reader)?;
        let array = Self::zeros(&dtype, shape).map_err(|e| e.0)?;
        let bytes = crate::read_at_most(reader, array.len).map_err(|e| e.to_string())?;
        if bytes.len() as u64 != array.len {
            let extents: Vec<String> = array.shape.iter().map(u64::to_string).collect();
            return Err(format!(
                "{} bytes of data do not fit the shape [{}] of `{}`, which has {}",
                bytes.len(),
                extents.join(", "),
                array.dtype,
                array.len
            ));
        }
        Ok(Self { fortran, bytes, ..array })
    }

    /// Writes a file; `data` gives the contents.
    pub(crate) fn write(
        &self,
        path: &Path,
        data: impl FnOnce(&mut dyn Write) -> Result<(), UsageError>,
    ) -> Result<(), UsageError> {
        let header = Header { dtype: self.dtype.clone(), fortran: self.fortran, shape: self.shape.clone() };
        crate::output::write_file(path, |out| {
            out.write_all(&header.encode())?;
            data(out).map_err(|error| std::io::Error::other(error.0))
        })
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
            array.bytes = (0..array.len()).map(|i| i as u8).collect();
            array.write(&path, |out| Ok(out.write_all(&array.bytes)?)).unwrap();
            let back = Array::read(&path).unwrap();
            assert_eq!((back.dtype, back.shape, back.bytes), (array.dtype, array.shape, array.bytes));
        }
        std::fs::remove_file(path).unwrap();
    }

    /// The header of the first declares a terabyte, which must not be allocated; the second is longer than
    /// declared.
    #[test]
    fn sizes_are_those_of_the_file() {
        let path = std::env::temp_dir().join(format!("ptxvm-npy-size-{}.npy", std::process::id()));
        for (shape, bytes, word) in
            [(1 << 38, 64, "64 bytes of data"), (3, 4000, "it has more than 12 bytes")]
        {
            let array = Array::zeros("f4", vec![shape]).unwrap();
            array.write(&path, |out| Ok(out.write_all(&vec![0; bytes])?)).unwrap();
            let error = Array::read(&path).unwrap_err().0;
            assert!(error.contains(word), "{error}");
        }
        std::fs::remove_file(path).unwrap();
        assert!(Array::zeros("f8", vec![1 << 38]).is_err());
        assert!(Array::zeros("f4", vec![u64::MAX, u64::MAX]).is_err());
        assert!(Array::zeros("f4", vec![1; 65]).is_err());
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
