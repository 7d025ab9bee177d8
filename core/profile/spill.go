package profile

import "github.com/bellows-rm/bellows/core/resource"

// SpilledWhole returns the bytes of input that go to disk when the whole buffer is spilled each time it is full and the
// rest stays in memory: floor(input/buffer)*buffer, and nothing if the input fits (YARN-ME section 2.3). Both are in
// bytes, buffer at least 1.
//
// 2010 MB of input spill 2000 MB with a buffer of 2000 MB, but only 1500 MB with a buffer of 1500 MB: less memory can
// be faster. The best under-sized buffers lie just above input/k.
func SpilledWhole(input, buffer resource.Amount) resource.Amount {
	if input <= buffer {
		return 0
	}
	return input / buffer * buffer
}
