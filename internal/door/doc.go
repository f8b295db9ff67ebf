// Package door is for senders that cannot reach Kafka: it takes bodies over HTTP and puts them, unread, onto the topic of
// a pipeline. Whether a body means anything is the decoder's to say, later and for the dead letters; the door only
// asks who sent it, how large it is, and whether Kafka has it. It answers 202 when every in-sync replica has stored the
// record and an error otherwise, so that a sender that repeats what was not accepted loses nothing. A sender that
// repeats what was accepted, because the answer was lost, counts twice, unless the event has an id.
package door
