// Package image builds the container image for every architecture, as `make image` does where there
// is neither a registry nor a container engine, and looks into what comes out.
//
// Invariant: nothing is left but buildah's list of digests, /var/lib/containers/cache, whose place
// cannot be chosen: the builder's storage is in the test's folder, and no daemon is needed. Not
// pure: its test runs buildah and debootstrap as root, and fetches some hundred MB (suite
// image-test, in the extended tier).
package image
