package realkafka

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Versions before 3.3 have no KRaft fit for use: their brokers need a ZooKeeper, whose classes are among their jars.
func (c *Cluster) prepareZooKeeper(flag string) error {
	c.zk = &node{dir: c.path("zookeeper")}
	if err := os.MkdirAll(c.zk.dir, 0o755); err != nil {
		return err
	}
	conf := filepath.Join(c.zk.dir, "zoo.properties")
	text := fmt.Sprintf("dataDir=data\nclientPort=%d\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\ntickTime=500\n"+
		"maxSessionTimeout=20000\nadmin.enableServer=false\n", c.zkPort)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return err
	}
	c.zk.command = func() *exec.Cmd { return c.java(64, flag, "org.apache.zookeeper.server.quorum.QuorumPeerMain", conf) }
	return nil
}

// zkUsers stores the SCRAM users, which versions with KRaft get when their storage is formatted.
func (c *Cluster) zkUsers(ctx context.Context) error {
	for _, u := range c.o.Users {
		if u.Mechanism == MechanismPlain {
			continue
		}
		cmd := c.java(64, "kafka.admin.ConfigCommand", "--zookeeper", addr(c.zkPort), "--alter", "--entity-type", "users",
			"--entity-name", u.Name, "--add-config", fmt.Sprintf("%s=[password=%s]", u.Mechanism, u.Password))
		cmd.Dir = c.dir
		endWithParent(cmd)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("add user %s: %w: %s", u.Name, err, lastLines(string(out)))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
