// Package mask takes secrets and personal data out of text that Tocsin stores: ticket texts, payloads of dead letters,
// error texts of samples. In place of each stands a word such as [email], so that a reader sees what was there.
//
// It is a net, not a proof: it knows the usual forms of addresses, numbers and tokens, in any script. A pipeline may
// add patterns of its own. Masking masked text keeps the words that stand there, and now and then finds more: a number
// that stood right behind another.
package mask
