// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs that note who has sent the packet that a softirq delivers, for the wakers of threads that wait for it. They
 * run for each packet that the host receives and for each softirq. No interrupt of a device sends a packet by itself: a
 * softirq does that.
 */
#include "packets.bpf.h"

#define IFF_LOOPBACK (1 << 3) /* include/uapi/linux/if.h */

/* Returns true if the device sends at once. Out of a queue, each thread also takes the packets of others. */
static __always_inline bool packets_have_no_queue(struct net_device *device)
{
	return !device->_tx->qdisc->enqueue;
}

static __always_inline bool packets_loop_back(struct sk_buff *skb)
{
	return skb->dev->flags & IFF_LOOPBACK;
}

static __always_inline struct loop_packet *packets_row(struct packets *own, u64 skb)
{
	return &own->queued[(skb >> 8 ^ skb >> 15) & (PACKETS - 1)]; /* the kernel allocates them at multiples of 256 */
}

/* Returns the program's first argument. The verifier allows no arithmetic with a pointer that it knows. */
static __always_inline u64 packets_address(void *ctx)
{
	u64 address = 0;

	bpf_probe_read_kernel(&address, sizeof(address), ctx);
	return address;
}

/* Returns true if another thread may take the CPU while a softirq runs: PREEMPT_RT. */
static __always_inline bool packets_may_mix(void)
{
	return bpf_core_field_exists(((struct task_struct___preempt_rt *)0)->softirq_disable_cnt);
}

/* Notes the current thread, which sends, or whose packet has caused this one. */
static __always_inline void packets_note(const struct packets *own, struct loop_packet *packet)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct pt_regs *regs = task_user_regs(task);

	if (own->in_softirq) {
		*packet = own->arriving;
		return;
	}
	packet->sender = (u64)task;
	packet->user_pc = PT_REGS_IP_CORE(regs);
	packet->user_sp = PT_REGS_SP_CORE(regs);
}

/* A packet is queued for the softirq. */
SEC("?tp_btf/netif_rx")
int BPF_PROG(packets_sent, struct sk_buff *skb)
{
	struct packets *own = packets_of_cpu();
	u64 address = packets_address(ctx);
	struct loop_packet *packet;

	if (!own || packets_may_mix())
		return 0;
	packet = packets_row(own, address);
	packet->skb = 0;
	if (!packets_loop_back(skb) || !packets_have_no_queue(skb->dev))
		return 0;
	packets_note(own, packet);
	packet->skb = address;
	return 0;
}

/* The softirq begins to deliver a packet of any device. */
SEC("?tp_btf/netif_receive_skb")
int BPF_PROG(packets_arrive, struct sk_buff *skb)
{
	struct packets *own = packets_of_cpu();
	u64 address = packets_address(ctx);
	struct loop_packet *packet;

	if (!own)
		return 0;
	own->arriving.sender = 0;
	packet = packets_row(own, address);
	/* A row may be of a packet that was dropped. Its memory may have become that of a packet of another device. */
	if (packet->skb == address && packets_loop_back(skb))
		own->arriving = *packet;
	packet->skb = 0;
	return 0;
}

/* The softirq has delivered the packets of a queue or a device. */
SEC("?tp_btf/napi_poll")
int BPF_PROG(packets_delivered)
{
	struct packets *own = packets_of_cpu();

	if (own)
		own->arriving.sender = 0;
	return 0;
}

SEC("?tp_btf/softirq_entry")
int BPF_PROG(packets_softirq_enter)
{
	struct packets *own = packets_of_cpu();

	if (own)
		own->in_softirq = 1;
	return 0;
}

SEC("?tp_btf/softirq_exit")
int BPF_PROG(packets_softirq_exit)
{
	struct packets *own = packets_of_cpu();

	if (own)
		own->in_softirq = 0;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
