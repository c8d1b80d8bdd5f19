//! The functions under the names that nvJitLink's header gives them.
//!
//! Since CUDA 12.0 that header appends its version to each name (`__nvJitLinkCreate_12_4`). Libraries that
//! are linked with nvJitLink, such as NVIDIA's cuSPARSE, need those names when they are loaded.
//!
//! Invariant: each is the same as the plain function. What it does not do: the names of versions after 13.5
//! are not known here.

use super::{Handle, In, Out, Outcome, Pointer, Text};
use std::ffi::c_int;

/// Exports a function under its name in each version.
macro_rules! versioned {
    ($name:literal $plain:ident ($($arg:ident: $ty:ty),*)) => {
        versioned! { $name $plain ($($arg: $ty),*)
            "12_0" "12_1" "12_2" "12_3" "12_4" "12_5" "12_6" "12_7" "12_8" "12_9"
            "13_0" "13_1" "13_2" "13_3" "13_4" "13_5"
        }
    };
    ($name:literal $plain:ident $args:tt $($version:literal)*) => {
        $(versioned! { @ $name $plain $args $version })*
    };
    (@ $name:literal $plain:ident ($($arg:ident: $ty:ty),*) $version:literal) => {
        const _: () = {
            #[unsafe(export_name = concat!("__", $name, "_", $version))]
            extern "C" fn versioned($($arg: $ty),*) -> Outcome {
                super::$plain($($arg),*)
            }
        };
    };
}

versioned! { "nvJitLinkCreate" nvJitLinkCreate (handle: Out<Handle>, count: u32, given: In<Text>) }
versioned! { "nvJitLinkDestroy" nvJitLinkDestroy (handle: Out<Handle>) }
versioned! { "nvJitLinkAddData" nvJitLinkAddData (handle: Handle, kind: c_int, data: Pointer, bytes: usize, name: Text) }
versioned! { "nvJitLinkAddFile" nvJitLinkAddFile (handle: Handle, kind: c_int, path: Text) }
versioned! { "nvJitLinkComplete" nvJitLinkComplete (handle: Handle) }
versioned! { "nvJitLinkGetLinkedCubinSize" nvJitLinkGetLinkedCubinSize (handle: Handle, bytes: Out<usize>) }
versioned! { "nvJitLinkGetLinkedCubin" nvJitLinkGetLinkedCubin (handle: Handle, place: Pointer) }
versioned! { "nvJitLinkGetLinkedPtxSize" nvJitLinkGetLinkedPtxSize (handle: Handle, bytes: Out<usize>) }
versioned! { "nvJitLinkGetLinkedPtx" nvJitLinkGetLinkedPtx (handle: Handle, place: Pointer) }
versioned! { "nvJitLinkGetErrorLogSize" nvJitLinkGetErrorLogSize (handle: Handle, bytes: Out<usize>) }
versioned! { "nvJitLinkGetErrorLog" nvJitLinkGetErrorLog (handle: Handle, place: Pointer) }
versioned! { "nvJitLinkGetInfoLogSize" nvJitLinkGetInfoLogSize (handle: Handle, bytes: Out<usize>) }
versioned! { "nvJitLinkGetInfoLog" nvJitLinkGetInfoLog (handle: Handle, place: Pointer) }
