"""Access control lists of remote topics: like those of their originals, but without permission to write.

Source: MirrorSourceConnector.{syncTopicAcls,shouldReplicateAcl,targetAclBinding} (Kafka 4.3). Only rules about topics
that are named in full are copied, and none is ever removed.
"""

from __future__ import annotations

from collections.abc import Collection

from airflow_connect.connectors.mirror.keys import MirrorKeys
from airflow_connect.connectors.mirror.policy import ReplicationPolicy
from airflow_connect.kafka.admin.topic_acls import TopicAcl, create_acls, topic_acls
from airflow_connect.kafka.clients.short_lived import Admin

ALLOW, WRITE, ALL, READ = "ALLOW", "WRITE", "ALL", "READ"


def copy_acls(policy: ReplicationPolicy, topics: Collection[str], source: Admin, target: Admin) -> str:
    """Add the rules that remote topics lack.

    Args:
        topics: of the source cluster.

    Returns:
        A sentence for the report, or "".

    Raises:
        ConnectError: one of the clusters refused, or did not answer.
    """
    wanted = {remote_acl(policy, rule) for rule in topic_acls(source) if rule.topic in topics and is_copied(rule)}
    missing = wanted.difference(topic_acls(target)) if wanted else ()
    if create_acls(target, sorted(missing)):
        return ""
    return (
        "The target cluster has no authorizer, so access control lists of the source cluster were not copied."
        f" {MirrorKeys.syncs_acls}=false ends this message."
    )


def is_copied(rule: TopicAcl) -> bool:
    """Whether a rule applies to the copy, too: only the mirror may write there."""
    return (rule.permission, rule.operation) != (ALLOW, WRITE)


def remote_acl(policy: ReplicationPolicy, rule: TopicAcl) -> TopicAcl:
    """The rule for the remote topic; who may do everything may read it."""
    is_all = (rule.permission, rule.operation) == (ALLOW, ALL)
    return rule._replace(topic=policy.remote_topic(rule.topic), operation=READ if is_all else rule.operation)
