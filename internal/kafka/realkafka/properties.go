package realkafka

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// properties is a broker's server.properties. What is small is small so that three brokers and the tests fit a laptop;
// what is quick is quick so that a killed broker is noticed within a test's patience.
func (c *Cluster) properties(n *node) map[string]string {
	p := map[string]string{
		"log.dirs":                                                    "data",
		"listener.security.protocol.map":                              "",
		"inter.broker.listener.name":                                  string(internal),
		"auto.create.topics.enable":                                   "false",
		"default.replication.factor":                                  fmt.Sprint(c.o.Replication),
		"min.insync.replicas":                                         fmt.Sprint(c.o.MinInSync),
		"offsets.topic.replication.factor":                            fmt.Sprint(c.o.Replication),
		"offsets.topic.num.partitions":                                "4",
		"transaction.state.log.replication.factor":                    fmt.Sprint(c.o.Replication),
		"transaction.state.log.min.isr":                               fmt.Sprint(c.o.MinInSync),
		"transaction.state.log.num.partitions":                        "4",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
		"group.initial.rebalance.delay.ms":                            "0",
		"group.min.session.timeout.ms":                                "100",
		"replica.lag.time.max.ms":                                     "4000",
		"replica.fetch.wait.max.ms":                                   "200",
		"controlled.shutdown.enable":                                  "true",
		// Records bear their own time, and that may be months ago.
		"log.retention.ms":                    "-1",
		"log.cleaner.backoff.ms":              "100",
		"log.cleaner.dedupe.buffer.size":      "4194304",
		"log.index.size.max.bytes":            "1048576",
		"num.network.threads":                 "2",
		"num.io.threads":                      "3",
		"background.threads":                  "2",
		"num.recovery.threads.per.data.dir":   "2",
		"socket.request.max.bytes":            "104857600",
		"replica.socket.receive.buffer.bytes": "65536",
	}
	listeners := slices.Clone(c.o.Listeners)
	listeners = append(listeners, internal)
	if c.rel.zookeeper {
		p["broker.id"] = fmt.Sprint(n.id)
		p["zookeeper.connect"] = addr(c.zkPort)
		p["zookeeper.session.timeout.ms"] = "3000"
	} else {
		p["node.id"] = fmt.Sprint(n.id)
		p["process.roles"] = "broker,controller"
		p["controller.listener.names"] = string(controller)
		p["broker.session.timeout.ms"] = "3000"
		p["broker.heartbeat.interval.ms"] = "500"
		p["controller.quorum.election.timeout.ms"] = "500"
		p["controller.quorum.fetch.timeout.ms"] = "1500"
		var voters []string
		for _, v := range c.nodes {
			voters = append(voters, fmt.Sprintf("%d@%s", v.id, addr(v.ports[controller])))
		}
		p["controller.quorum.voters"] = strings.Join(voters, ",")
		listeners = append(listeners, controller)
	}
	if strings.HasPrefix(c.o.Version, "4.") {
		p["share.coordinator.state.topic.replication.factor"] = fmt.Sprint(c.o.Replication)
		p["share.coordinator.state.topic.min.isr"] = fmt.Sprint(c.o.MinInSync)
	}
	var binds, tells, protos []string
	for _, l := range listeners {
		binds = append(binds, fmt.Sprintf("%s://%s", l, addr(n.ports[l])))
		protos = append(protos, fmt.Sprintf("%s:%s", l, protocols[l]))
		if l != controller {
			tells = append(tells, fmt.Sprintf("%s://%s", l, n.told(l)))
		}
	}
	p["listeners"] = strings.Join(binds, ",")
	p["advertised.listeners"] = strings.Join(tells, ",")
	p["listener.security.protocol.map"] = strings.Join(protos, ",")
	c.secure(p)
	maps.Copy(p, c.o.Properties)
	return p
}

// secure adds certificate and logins.
func (c *Cluster) secure(p map[string]string) {
	for _, l := range []Listener{TLS, SASLTLS} {
		if c.o.has(l) {
			prefix := "listener.name." + strings.ToLower(string(l)) + ".ssl."
			p[prefix+"keystore.type"] = "PEM"
			p[prefix+"keystore.key"] = c.key
			p[prefix+"keystore.certificate.chain"] = c.cert
		}
	}
	for _, l := range []Listener{SASL, SASLTLS} {
		if !c.o.has(l) {
			continue
		}
		prefix := "listener.name." + strings.ToLower(string(l)) + "."
		p[prefix+"sasl.enabled.mechanisms"] = MechanismPlain + "," + MechanismScram256 + "," + MechanismScram512
		plain := "org.apache.kafka.common.security.plain.PlainLoginModule required"
		for _, u := range c.o.Users {
			if u.Mechanism == MechanismPlain {
				plain += fmt.Sprintf(" user_%s=%q", u.Name, u.Password)
			}
		}
		p[prefix+"plain.sasl.jaas.config"] = plain + ";"
		for _, m := range []string{MechanismScram256, MechanismScram512} {
			p[prefix+strings.ToLower(m)+".sasl.jaas.config"] = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
		}
	}
}

var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`)

func render(p map[string]string) []byte {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&b, "%s=%s\n", k, escape.Replace(p[k]))
	}
	return []byte(b.String())
}

// Kafka 4 logs with log4j 2, older ones with reload4j.
const (
	log4j2 = `rootLogger.level=WARN
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %c{1} %m%n
`
	log4j1 = `log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c{1} %m%n
`
)
