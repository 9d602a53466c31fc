// A sentence as a vector, in Go: go build embed.go && ./embed FOLDER "a cat", FOLDER being an encoder of Hugging Face.
package main

// #cgo LDFLAGS: -lrlx_c
// #include <stdlib.h>
// #include "rlx/c.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"
)

func check(status C.rlx_status) error {
	if status == C.RLX_OK {
		return nil
	}
	return errors.New(C.GoString(C.rlx_last_error()))
}

func embed(folder, text string) ([]float32, error) {
	runtime.LockOSThread() // the last error is that of a thread
	defer runtime.UnlockOSThread()
	path, sentence := C.CString(folder), C.CString(text)
	defer C.free(unsafe.Pointer(path))
	defer C.free(unsafe.Pointer(sentence))

	var session *C.rlx_session
	var encoder *C.rlx_encoder
	defer func() { C.rlx_encoder_free(encoder); C.rlx_session_free(session) }()
	if err := check(C.rlx_session_new(0, nil, &session)); err != nil {
		return nil, err
	}
	if err := check(C.rlx_encoder_open(path, session, &encoder)); err != nil {
		return nil, err
	}
	vector := make([]float32, C.rlx_encoder_width(encoder))
	err := check(C.rlx_encoder_embed(encoder, &sentence, 1, (*C.float)(&vector[0])))
	return vector, err
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: embed FOLDER TEXT")
		os.Exit(2)
	}
	vector, err := embed(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
	fmt.Printf("%d values, the first %.4f\n", len(vector), vector[0])
}
