package agent

import "time"

// Times of an agent.
const (
	heartbeatPeriod   = time.Minute            // the Lease is renewed; an agent at rest looks again
	reportPeriod      = 10 * time.Second       // at least between two writes about one Grid, or of the Lease
	settleDelay       = 200 * time.Millisecond // changes this close together start one round
	retryDelay        = time.Second            // after a failed round; it doubles
	retryDelayMax     = 30 * time.Second
	roundTimeout      = 2 * time.Minute
	requestTimeout    = 20 * time.Second // of one request to an API server
	watchGrace        = 2 * time.Minute  // for the first list of a watch
	missingKindPeriod = 5 * time.Second  // a kind that the API server does not serve is looked for
	recallPeriod      = time.Minute      // at least between two readings of the reports that the hub has
)

// Times of Flux.
const (
	enginePeriod   = 30 * time.Second // Flux is looked for while it is missing
	engineGrace    = 2 * time.Minute  // for Flux to react, before that is a problem
	repairPeriod   = 10 * time.Second // at least between two requests to look at one edited set
	promptDelay    = 20 * time.Second // before the agent asks Flux to look again at a set; it doubles
	promptDelayMax = 30 * time.Minute
)

// Limits of the connection to a hub. Watches begin again after each loss, but no more often in a
// row than this: another cluster that was joined under the same name writes its Lease too, each
// minute.
const (
	secretPeriod    = 30 * time.Second // the Secret with the token or kubeconfig is read again
	rewatchPeriod   = 10 * time.Minute
	rewatchBurst    = 3
	requestsASecond = 20 // to another cluster
	requestsBurst   = 50
)

// Limits of a member's token.
const (
	tokenLifetime      = 90 * 24 * time.Hour // is requested; the hub may give less
	tokenRenewalDelay  = 24 * time.Hour      // or half of its life, if that is shorter
	tokenRetryDelayMax = time.Hour           // between two attempts to renew it
	tokenMax           = 16 << 10            // bytes
)

// Limits of a Push.
const (
	pushSettleDelay = time.Second // changes this close together start one round
	detachingMax    = 8           // at the same time
	detachTimeout   = time.Minute
	endTimeout      = 10 * time.Second // for agents to end
	excessDelay     = 10 * time.Minute // before the agent of one cluster that sent too much starts again
)

// Limits of what the API server of another cluster may send. Its admin may be anyone, and all that
// it sends is in the memory of the hub's controller.
const (
	bodyMax     = 64 << 20 // bytes of a list with all its pages, or of a watch in boundPeriod
	boundPeriod = time.Minute
	objectsMax  = 100_000 // in the caches
)

// Limits of the Reader of a Server.
const (
	ReadsASecond = 50
	ReadsBurst   = 200
)

// Limits of requests for archives. One address cannot use up what there is for all.
const (
	fetchTimeout                         = 30 * time.Second
	fetchesMax                           = 32 // at the same time
	peerFetchesMax                       = fetchesMax / 4
	fetchesASecond, fetchesBurst         = ReadsASecond, ReadsBurst
	peerFetchesASecond, peerFetchesBurst = 20, 100
	peersMax                             = 256 // addresses that are remembered
)
