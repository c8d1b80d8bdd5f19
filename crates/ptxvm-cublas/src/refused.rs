//! Exported functions that return `CUBLAS_STATUS_NOT_SUPPORTED`. `PTXVM_LOG` names each of them that a
//! program calls.
//!
//! The functions of the first version (`cublas.h`) have no handle, and most return no status. They return NaN
//! (or index 0), and a message names them without `PTXVM_LOG`, because their callers have no other way to
//! know.
//!
//! Invariant: a name is either here or in a file that implements it; the linker rejects a symbol that is
//! defined twice. What it does not do: parameters are not read, so their types are omitted, which C's calling
//! conventions allow.

use crate::log;
use crate::number::{C32, C64};
use crate::status::Status;

macro_rules! refused {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> Status {
            log::refused::<()>(stringify!($name)).err().unwrap_or(Status::NOT_SUPPORTED)
        }
    )*};
}

/// Functions of the first version, by their return type.
macro_rules! first_version {
    ($ty:ty, $value:expr; $($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> $ty {
            log::say(concat!("ptxvm: ", stringify!($name), " of cublas.h is not supported; use the functions of cublas_v2.h"));
            $value
        }
    )*};
}

// This function is in no header, but NVIDIA's cuSOLVER does not load without it.
refused! {
    cublasSetEnvironmentMode
}

refused! {
    cublasCgelsBatched
    cublasCgeqrfBatched
    cublasDgelsBatched
    cublasDgemmGroupedBatched
    cublasDgemmGroupedBatched_64
    cublasDgeqrfBatched
    cublasGemmGroupedBatchedEx
    cublasGemmGroupedBatchedEx_64
    cublasGetEmulationSpecialValuesSupport
    cublasGetFixedPointEmulationMantissaBitCountPointer
    cublasGetFixedPointEmulationMantissaBitOffset
    cublasGetFixedPointEmulationMantissaControl
    cublasGetFixedPointEmulationMaxMantissaBitCount
    cublasLtEmulationDescCreate
    cublasLtEmulationDescDestroy
    cublasLtEmulationDescGetAttribute
    cublasLtEmulationDescInit_internal
    cublasLtEmulationDescSetAttribute
    cublasLtGroupedMatrixLayoutCreate
    cublasLtGroupedMatrixLayoutInit_internal
    cublasLtMatrixTransform
    cublasLtMatrixTransformDescCreate
    cublasLtMatrixTransformDescDestroy
    cublasLtMatrixTransformDescGetAttribute
    cublasLtMatrixTransformDescInit_internal
    cublasLtMatrixTransformDescSetAttribute
    cublasRotmgEx
    cublasSetEmulationSpecialValuesSupport
    cublasSetFixedPointEmulationMantissaBitCountPointer
    cublasSetFixedPointEmulationMantissaBitOffset
    cublasSetFixedPointEmulationMantissaControl
    cublasSetFixedPointEmulationMaxMantissaBitCount
    cublasSgelsBatched
    cublasSgemmGroupedBatched
    cublasSgemmGroupedBatched_64
    cublasSgeqrfBatched
    cublasUint8gemmBias
    cublasXtCgemm
    cublasXtChemm
    cublasXtCher2k
    cublasXtCherk
    cublasXtCherkx
    cublasXtCreate
    cublasXtCspmm
    cublasXtCsymm
    cublasXtCsyr2k
    cublasXtCsyrk
    cublasXtCsyrkx
    cublasXtCtrmm
    cublasXtCtrsm
    cublasXtDestroy
    cublasXtDeviceSelect
    cublasXtDgemm
    cublasXtDspmm
    cublasXtDsymm
    cublasXtDsyr2k
    cublasXtDsyrk
    cublasXtDsyrkx
    cublasXtDtrmm
    cublasXtDtrsm
    cublasXtGetBlockDim
    cublasXtGetNumBoards
    cublasXtGetPinningMemMode
    cublasXtMaxBoards
    cublasXtSetBlockDim
    cublasXtSetCpuRatio
    cublasXtSetCpuRoutine
    cublasXtSetPinningMemMode
    cublasXtSgemm
    cublasXtSspmm
    cublasXtSsymm
    cublasXtSsyr2k
    cublasXtSsyrk
    cublasXtSsyrkx
    cublasXtStrmm
    cublasXtStrsm
    cublasXtZgemm
    cublasXtZhemm
    cublasXtZher2k
    cublasXtZherk
    cublasXtZherkx
    cublasXtZspmm
    cublasXtZsymm
    cublasXtZsyr2k
    cublasXtZsyrk
    cublasXtZsyrkx
    cublasXtZtrmm
    cublasXtZtrsm
    cublasZgelsBatched
    cublasZgeqrfBatched
}

first_version! {
    Status, Status::NOT_SUPPORTED;
    cublasAlloc
    cublasFree
    cublasGetError
    cublasGetVersion
    cublasInit
    cublasSetKernelStream
    cublasShutdown
}

first_version! {
    (), ();
    cublasCaxpy
    cublasCcopy
    cublasCgbmv
    cublasCgemm
    cublasCgemv
    cublasCgerc
    cublasCgeru
    cublasChbmv
    cublasChemm
    cublasChemv
    cublasCher
    cublasCher2
    cublasCher2k
    cublasCherk
    cublasChpmv
    cublasChpr
    cublasChpr2
    cublasCrot
    cublasCrotg
    cublasCscal
    cublasCsrot
    cublasCsscal
    cublasCswap
    cublasCsymm
    cublasCsyr2k
    cublasCsyrk
    cublasCtbmv
    cublasCtbsv
    cublasCtpmv
    cublasCtpsv
    cublasCtrmm
    cublasCtrmv
    cublasCtrsm
    cublasCtrsv
    cublasDaxpy
    cublasDcopy
    cublasDgbmv
    cublasDgemm
    cublasDgemv
    cublasDger
    cublasDrot
    cublasDrotg
    cublasDrotm
    cublasDrotmg
    cublasDsbmv
    cublasDscal
    cublasDspmv
    cublasDspr
    cublasDspr2
    cublasDswap
    cublasDsymm
    cublasDsymv
    cublasDsyr
    cublasDsyr2
    cublasDsyr2k
    cublasDsyrk
    cublasDtbmv
    cublasDtbsv
    cublasDtpmv
    cublasDtpsv
    cublasDtrmm
    cublasDtrmv
    cublasDtrsm
    cublasDtrsv
    cublasSaxpy
    cublasScopy
    cublasSgbmv
    cublasSgemm
    cublasSgemv
    cublasSger
    cublasSrot
    cublasSrotg
    cublasSrotm
    cublasSrotmg
    cublasSsbmv
    cublasSscal
    cublasSspmv
    cublasSspr
    cublasSspr2
    cublasSswap
    cublasSsymm
    cublasSsymv
    cublasSsyr
    cublasSsyr2
    cublasSsyr2k
    cublasSsyrk
    cublasStbmv
    cublasStbsv
    cublasStpmv
    cublasStpsv
    cublasStrmm
    cublasStrmv
    cublasStrsm
    cublasStrsv
    cublasXerbla
    cublasZaxpy
    cublasZcopy
    cublasZdrot
    cublasZdscal
    cublasZgbmv
    cublasZgemm
    cublasZgemv
    cublasZgerc
    cublasZgeru
    cublasZhbmv
    cublasZhemm
    cublasZhemv
    cublasZher
    cublasZher2
    cublasZher2k
    cublasZherk
    cublasZhpmv
    cublasZhpr
    cublasZhpr2
    cublasZrot
    cublasZrotg
    cublasZscal
    cublasZswap
    cublasZsymm
    cublasZsyr2k
    cublasZsyrk
    cublasZtbmv
    cublasZtbsv
    cublasZtpmv
    cublasZtpsv
    cublasZtrmm
    cublasZtrmv
    cublasZtrsm
    cublasZtrsv
}

first_version! {
    f32, f32::NAN;
    cublasSasum
    cublasScasum
    cublasScnrm2
    cublasSdot
    cublasSnrm2
}

first_version! {
    f64, f64::NAN;
    cublasDasum
    cublasDdot
    cublasDnrm2
    cublasDzasum
    cublasDznrm2
}

first_version! {
    i32, 0;
    cublasIcamax
    cublasIcamin
    cublasIdamax
    cublasIdamin
    cublasIsamax
    cublasIsamin
    cublasIzamax
    cublasIzamin
}

first_version! {
    C32, C32::new(f32::NAN, f32::NAN);
    cublasCdotc
    cublasCdotu
}

first_version! {
    C64, C64::new(f64::NAN, f64::NAN);
    cublasZdotc
    cublasZdotu
}
