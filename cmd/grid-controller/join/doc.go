// Package join is the commands `grid-controller join` and `grid-controller leave`. They run against
// the hub, with an administrator's rights. join prepares the hub for one more cluster, and prints
// the manifest with which a cluster that fetches its Grids reaches the hub. leave removes what join
// has made.
//
// Where to look: objects.go, what is on the hub for a cluster, with its rights; manifest.go, what
// is for the member; kubeconfig.go, which kubeconfig of a member can be used; request.go, the
// command line of join; joining.go, its order; hub.go, the API server; leave.go, the other command;
// limits.go, times and bounds.
//
// Invariant: what one cluster's account may do concerns that cluster alone. join can be run again
// at any time. Standard output has the manifest and nothing else.
//
// Pure: objects.go, manifest.go, kubeconfig.go and request.go. The rest uses an API server and
// standard streams.
package join
