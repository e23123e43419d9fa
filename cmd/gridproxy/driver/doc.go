// Package driver is the only place in cmd that knows the kernel mechanisms: what each value of
// --proxy-mode means. Every other package asks a Driver, or a function of this package.
//
// Invariant: there is one row in modes for each name in options.Modes. A new mode adds a file and a
// row here, and a row in options; no other package names a mode or imports its backend.
//
//	driver.go    the interfaces, the table of modes, and the questions to the mode in use
//	iptables.go  mode iptables: chains. Its parts serve mode ipvs too
//	ipvs.go      mode ipvs: virtual servers over chains, what render and explain print about
//	             them; also retires what that mode has left
//	shadow.go    compares and writes nothing: what diff prints, and in which order
//	cleanup.go   removes what every mode has left
//
// Not pure: drivers read and write the kernel. Rendering and explaining are pure.
package driver
