// Package kernel has Debian's cloud kernels at hand: it fetches the package that is newest, unpacks it
// into the user's cache folder without installing it, and says which modules a test of networking needs.
//
// What must hold: a folder in the cache is complete. It is made beside its place and renamed, so two
// processes may fetch at the same time.
//
// Not pure: it runs apt-get, dpkg-deb, xz and depmod, and reads and writes files.
package kernel
