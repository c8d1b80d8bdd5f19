//! nvJitLink's interface: links PTX without the driver, and the driver loads the result.

mod support;

use support::Api;

const NULL: usize = 0;

const HEAD: &str = ".version 6.4\n.target sm_70\n.address_size 64\n";

fn caller() -> String {
    format!(
        "{HEAD}.extern .func (.param .u32 r) seven();\n.visible .entry k(.param .u64 out) {{ .reg .b64 %rd; .reg .b32 %r;
         ld.param.u64 %rd, [out]; .param .u32 p; call (p), seven, (); ld.param.u32 %r, [p]; st.global.u32 [%rd], %r; ret; }}"
    )
}

fn callee() -> String {
    format!("{HEAD}.visible .func (.param .u32 r) seven() {{ st.param.u32 [r], 7; ret; }}")
}

fn create(api: Api, options: &[&std::ffi::CStr]) -> (i32, usize) {
    let list: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
    let mut handle = NULL;
    (api.call("nvJitLinkCreate", (&raw mut handle, list.len() as u32, list.as_ptr())), handle)
}

fn add(api: Api, link: usize, kind: i32, text: &str) -> i32 {
    api.call("nvJitLinkAddData", (link, kind, text.as_ptr(), text.len(), c"part".as_ptr()))
}

fn text(api: Api, link: usize, what: &str) -> Vec<u8> {
    let bytes = api.make(&format!("nvJitLinkGet{what}Size"), |out: *mut usize| (link, out));
    let mut text = vec![0u8; bytes];
    api.ok(&format!("nvJitLinkGet{what}"), (link, text.as_mut_ptr()));
    text
}

#[test]
fn several_texts_become_an_image_that_the_driver_loads() {
    let (api, _) = Api::with_context();
    let (status, mut link) = create(api, &[c"-arch=sm_80", c"-O3", c"-lineinfo"]);
    assert_eq!(status, 0);
    assert_eq!((add(api, link, 2, &caller()), add(api, link, 10, &callee())), (0, 0));
    api.ok("nvJitLinkComplete", (link,));
    let image = text(api, link, "LinkedCubin");
    api.ok("nvJitLinkDestroy", (&raw mut link,));
    assert_eq!(link, NULL);
    let module = api.make("cuModuleLoadData", |out: *mut usize| (out, image.as_ptr()));
    let out = api.alloc(4);
    assert_eq!(api.launch(api.function(module, "k"), (1, 1), NULL, out), 0);
    assert_eq!(api.read(out, 1), [7]);
}

#[test]
fn the_names_of_each_version_link_too() {
    let (api, _) = Api::with_context();
    for version in ["12_0", "12_4", "12_9", "13_0", "13_5"] {
        let name = |function: &str| format!("__nvJitLink{function}_{version}");
        let options = [c"-arch=sm_80".as_ptr()];
        let mut link = NULL;
        api.ok(&name("Create"), (&raw mut link, 1u32, options.as_ptr()));
        for (kind, text) in [(2, caller()), (10, callee())] {
            let part = c"part".as_ptr();
            api.ok(&name("AddData"), (link, kind, text.as_ptr(), text.len(), part));
        }
        api.ok(&name("Complete"), (link,));
        let bytes = api.make(&name("GetLinkedCubinSize"), |out: *mut usize| (link, out));
        let mut image = vec![0u8; bytes];
        api.ok(&name("GetLinkedCubin"), (link, image.as_mut_ptr()));
        for log in ["GetErrorLogSize", "GetInfoLogSize"] {
            assert_eq!(api.make(&name(log), |out: *mut usize| (link, out)), 1, "{version}");
        }
        api.ok(&name("Destroy"), (&raw mut link,));
        assert_eq!(image, {
            let (_, link) = create(api, &[c"-arch=sm_80"]);
            assert_eq!((add(api, link, 2, &caller()), add(api, link, 10, &callee())), (0, 0));
            api.ok("nvJitLinkComplete", (link,));
            text(api, link, "LinkedCubin")
        });
    }
}

#[test]
fn what_is_wrong_is_in_the_log() {
    let api = Api::open();
    // No architecture, an unknown option, no option at all.
    assert_eq!(create(api, &[c"-O3"]).0, 2);
    assert_eq!(create(api, &[c"-arch=sm_80", c"-twist"]).0, 1);
    assert_eq!(create(api, &[c"-arch=sm_80", c"-lto"]).0, 1);
    assert_eq!(create(api, &[]).0, 2);
    let (_, link) = create(api, &[c"-arch=sm_80"]);
    let mut bytes = 0usize;
    assert_eq!(api.call("nvJitLinkGetLinkedCubinSize", (link, &raw mut bytes)), 3);
    assert_eq!(api.call("nvJitLinkComplete", (link,)), 3);
    // NVVM's representation.
    assert_eq!(add(api, link, 3, "BC"), 8);
    // Two definitions of one function.
    assert_eq!((add(api, link, 2, &callee()), add(api, link, 2, &callee())), (0, 0));
    assert_eq!(api.call("nvJitLinkComplete", (link,)), 4);
    let log = String::from_utf8(text(api, link, "ErrorLog")).expect("UTF-8");
    assert!(log.contains("error[") && log.contains("seven"), "{log}");
    assert_eq!(add(api, NULL, 2, &caller()), 3);
    assert_eq!(api.call("nvJitLinkCreate", (NULL, 0u32, NULL)), 3);
    assert_eq!(api.call("nvJitLinkDestroy", (NULL,)), 3);
}

#[test]
fn it_is_of_a_version_whose_clients_hand_over_ptx() {
    let (mut major, mut minor) = (0u32, 9u32);
    Api::open().ok("nvJitLinkVersion", (&raw mut major, &raw mut minor));
    assert_eq!((major, minor), (12, 0));
}
