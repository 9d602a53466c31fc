// A sentence as a vector, in Rust: rustc embed.rs -l rlx_c && ./embed FOLDER "a cat", FOLDER being an encoder of Hugging Face.
use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::null;

extern "C" {
    fn rlx_last_error() -> *const c_char;
    fn rlx_session_new(threads: c_int, precision: *const c_char, out: *mut *mut c_void) -> c_int;
    fn rlx_session_free(session: *mut c_void);
    fn rlx_encoder_open(path: *const c_char, session: *const c_void, out: *mut *mut c_void) -> c_int;
    fn rlx_encoder_free(encoder: *mut c_void);
    fn rlx_encoder_width(encoder: *const c_void) -> usize;
    fn rlx_encoder_embed(encoder: *const c_void, texts: *const *const c_char, count: usize, out: *mut f32) -> c_int;
}

fn check(status: c_int) -> Result<(), String> {
    if status == 0 {
        return Ok(());
    }
    Err(unsafe { CStr::from_ptr(rlx_last_error()) }.to_string_lossy().into_owned())
}

/// What RLX made, which is freed when it goes out of scope.
struct Handle(*mut c_void, unsafe extern "C" fn(*mut c_void));

impl Drop for Handle {
    fn drop(&mut self) {
        unsafe { (self.1)(self.0) }
    }
}

fn embed(folder: &str, text: &str) -> Result<Vec<f32>, String> {
    let path = CString::new(folder).map_err(|e| e.to_string())?;
    let text = CString::new(text).map_err(|e| e.to_string())?;
    let mut session = Handle(std::ptr::null_mut(), rlx_session_free);
    let mut encoder = Handle(std::ptr::null_mut(), rlx_encoder_free);
    unsafe {
        check(rlx_session_new(0, null(), &mut session.0))?;
        check(rlx_encoder_open(path.as_ptr(), session.0, &mut encoder.0))?;
        let mut vector = vec![0f32; rlx_encoder_width(encoder.0)];
        check(rlx_encoder_embed(encoder.0, &text.as_ptr(), 1, vector.as_mut_ptr()))?;
        Ok(vector)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() != 3 {
        eprintln!("usage: embed FOLDER TEXT");
        std::process::exit(2);
    }
    match embed(&arguments[1], &arguments[2]) {
        Ok(vector) => println!("{} values, the first {:.4}", vector.len(), vector[0]),
        Err(error) => {
            eprintln!("embed: {error}");
            std::process::exit(1);
        }
    }
}
