//! No function crashes on nulls: each is called with only zeros, without a context and with one.
//!
//! The names come from the page of entry points, which a test keeps complete.

mod support;

use support::Api;

/// The implemented functions, from the documentation's page.
fn implemented() -> Vec<&'static str> {
    let page = include_str!("../../../docs/cuda-entry-points.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let names =
        rows.filter_map(|row| row.split_once("` | ")).filter(|(_, brief)| !brief.starts_with("refused"));
    names.map(|(name, _)| name).collect()
}

#[test]
fn nulls_are_answered() {
    let api = Api::open();
    let names = implemented();
    assert!(names.len() > 300, "{} functions", names.len());
    let zeros = || (0usize, 0usize, 0usize, 0usize, 0usize, 0usize, 0usize, 0usize, 0usize, 0usize, 0usize);
    for name in &names {
        let status = api.call(name, zeros());
        // A panic becomes `CUDA_ERROR_UNKNOWN`.
        assert_ne!(status, 999, "{name} without a context");
        // For zero attributes there is nothing to write.
        let asks = name.contains("Get") && *name != "cuPointerGetAttributes";
        assert!(!asks || status != 0, "{name} wrote to a null pointer");
    }
    for name in &names {
        let (api, context) = Api::with_context();
        let status = api.call(name, zeros());
        assert_ne!(status, 999, "{name} with a context");
        let makes = name.contains("Create") || name.contains("Alloc") || name.contains("Load");
        assert!(!makes || status != 0, "{name} made an object without a place for its handle");
        // The call may have destroyed or popped the context.
        let _ended = api.call("cuCtxDestroy_v2", (context,));
    }
}

#[test]
fn handles_of_nothing_are_refused() {
    // Functions whose first argument is a handle, in a context.
    let (api, _context) = Api::with_context();
    let dead = api.make("cuEventCreate", |out: *mut usize| (out, 0u32));
    api.ok("cuEventDestroy_v2", (dead,));
    let first = [
        "cuModuleUnload",
        "cuLibraryUnload",
        "cuLinkDestroy",
        "cuStreamDestroy_v2",
        "cuStreamSynchronize",
        "cuStreamQuery",
        "cuEventDestroy_v2",
        "cuEventQuery",
        "cuEventSynchronize",
        "cuArrayDestroy",
        "cuMipmappedArrayDestroy",
        "cuTexRefDestroy",
        "cuLaunch",
        "cuFuncLoad",
    ];
    for name in first {
        for handle in [dead, usize::MAX, 3] {
            assert_eq!(api.call(name, (handle,)), 400, "{name} of {handle:#x}");
        }
    }
    // A context is not a stream, and an event is not a module.
    let event = api.make("cuEventCreate", |out: *mut usize| (out, 0u32));
    assert_eq!(api.call("cuModuleUnload", (event,)), 400);
    assert_eq!(api.call("cuStreamSynchronize", (event,)), 400);
    assert_eq!(api.call("cuCtxDestroy_v2", (event,)), 201);
}
